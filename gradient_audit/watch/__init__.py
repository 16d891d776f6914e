"""Watching: hooks that see what a script does with gradients, and add events to a trace. They change no number."""
