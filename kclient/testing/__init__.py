"""For tests of applications and of kclient itself: a clock set by hand and clients without brokers."""
