"""What keepwell keeps: lessons, scopes, changes and the rules for their text.

Standard library only; no input or output, no clock, no randomness.
"""
