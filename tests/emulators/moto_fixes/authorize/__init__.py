"""What a call to the emulator asks of IAM: the authorization requests that the real services make of it.

Decides nothing: judging is `..access`'s.  Written after the Service Authorization Reference and the services' user guides; never compared with a live
account.  Where those leave a value open, the key is left out, so that a condition on it fails.
"""
