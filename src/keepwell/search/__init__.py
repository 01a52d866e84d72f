"""How a question becomes terms and how found lessons are ordered; the engines only look terms up."""
