# Calls init from another account in the block of the deployment.
# expect: ok deployer
import pvm_host


def init(payload):
    pvm_host.set_state(b"owner", pvm_host.context()["sender"])
    return b"begun"


def digest(payload):
    return pvm_host.keccak256(payload)


def attack(payload):
    owner = pvm_host.get_state(b"owner")
    return b"deployer" if owner == pvm_host.actor_owner() else b"stranger"
