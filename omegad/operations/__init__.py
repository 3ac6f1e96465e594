"""Running the service: its state, proof, erasing, looking back, and moving a log from one home to another."""
