"""What can go wrong between a home and its post, in words that say what to do."""

from omegad.runtime.errors import Invalid, Refused, Unavailable


class BadAddress(Invalid):
    """The address of the post cannot be read."""

    hint = "give it as postgresql://LOGIN@HOST:PORT/DATABASE"


class DriverAbsent(Unavailable):
    """What speaks to PostgreSQL is not installed."""

    hint = "pip install 'omegad[shared]', and start omegad again"


class PostUnreachable(Unavailable):
    """The post cannot be reached."""

    hint = (
        "see whether the server runs and this machine reaches it; nothing is lost, and a home that has joined"
        " tries again by itself"
    )


class PostLost(PostUnreachable):
    """The connection to the post ended in the middle."""

    hint = "it is made again by itself; what was not acknowledged is sent once more"


class PostSilent(PostUnreachable):
    """The post did not answer in time."""

    hint = "it is tried again by itself; see whether the server is overloaded or the network slow"


class LoginRefused(Unavailable):
    """The post does not accept this login and password."""

    hint = "check the login in the address and the password; an administrator of the post can give a new one"


class PasswordAbsent(LoginRefused):
    """The post asks for a password, and none was given."""

    hint = "--password-file names a file that has it; for a home, `omegad share join` takes it anew"


class LoginRemoved(LoginRefused):
    """The login was removed from its last team."""

    hint = (
        "its membership was ended: an administrator of the post can add the person again, with a new password"
    )


class NotEncrypted(Unavailable):
    """The connection to the post would not be encrypted, or not be known to be to the right server."""

    hint = (
        "have the server offer TLS with a certificate for its name; a certificate of your own is named by"
        " ?sslrootcert=FILE in the address"
    )


class NotAMember(Refused):
    """The login is not a member of the team."""

    hint = "ask an administrator of the post to add the login to the team, and check the team's name"


class NotInstalled(Unavailable):
    """The database holds no post."""

    hint = "an administrator of the database makes one with `omegad share init`"


class PostOutdated(Unavailable):
    """The post's schema is older than this version of omegad needs."""

    hint = "an administrator of the database upgrades it with `omegad share init`; until then nothing is lost"


class HomeOutdated(Unavailable):
    """The post's schema is newer than this version of omegad knows."""

    hint = "upgrade omegad on this machine; until then nothing is lost"


class PostRefused(Unavailable):
    """The post did not do what it was asked."""

    hint = "see the message; the server's log says more"


class Forked(Refused):
    """Another home tells the team something under the same name, or this one was restored from a copy."""

    hint = "a copied or restored home takes a new name and goes on"


class AheadOfClock(Refused):
    """What this home wants to share is stamped with a time that has not come yet."""

    hint = (
        "if this machine's clock is ahead, set it right. What it stamped, and what follows, is told by itself"
        " when that time has come; until then what others say is received, and all else goes on as ever"
    )


class NotYours(Refused):
    """It belongs to somebody else."""

    hint = "who stored it, or an administrator of the team, can erase it for everyone"


class StoredByAnother(NotYours):
    """What is to be erased for everyone, somebody else stored."""


class Retired(Refused):
    """The home was retired, as one that is gone."""

    hint = (
        "nothing is lost: `omegad share leave`, and `omegad share join` with the team's address and the"
        " password, have it go on under a new name, receive what it missed and tell what it has to;"
        " choose its projects again then, by `omegad share choose PROJECT`"
    )


class TooLarge(Invalid):
    """More is sent at once, or a larger fact, than the post takes."""

    hint = "send less at once"
