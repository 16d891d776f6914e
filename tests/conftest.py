"""Settings for all tests."""

from hypothesis import settings

settings.register_profile("house", deadline=None)  # the first call into torch takes as long as it likes
settings.load_profile("house")
