"""What any program of ours needs: errors, clock, configuration, telemetry, and nothing of what omegad is
about.
"""
