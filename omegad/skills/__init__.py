"""What agents learn of skills: the markers in what they say, the skills' files, and the words that tell what came of it."""
