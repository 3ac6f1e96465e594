"""The person and the agent: profile, identity, reminders, skills."""
