"""Minting data credentials, a module per cloud.  `port` is what is asked, `choose` who is asked."""
