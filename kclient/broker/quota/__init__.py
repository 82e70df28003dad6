"""Client quotas: how much users, clients and addresses may have, and how long who takes more is held back."""
