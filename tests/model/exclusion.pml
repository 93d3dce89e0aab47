/* Exclusion: no two clients hold a lock at once, and no lease that is extended has had another holder in between. The
 * model has acquire, release, extend and the restart quarantine, on three nodes.
 *
 * Time. There is no clock. A lease stands for one `start + ttl - drift`, that of an acquire or of its extension.
 * `running` is the set of the leases that have begun and whose validity has not ended. The validity of any lease may
 * end at any moment, which also models a client that pauses for too long. The lease of an extension ends after the
 * lease that it extends. Only one property of the arithmetic remains, on which the protocol relies: a key does not
 * expire before the validity of its lease ends. After that it may expire at any moment or never: either a SET finds
 * it gone, or the SET is refused, which changes nothing.
 *
 * Messages. `sets`, `releases` and `extends` are the nodes to which such commands are on their way. They arrive in
 * any order, at any time, or never. This models a lost message, a late one, and a client that crashed before it sent
 * one. A command that would be refused stays on its way, because a client needs no refusal to give up. A client
 * counts all replies that exist when it decides. It may give up before they arrive.
 *
 * Quarantine. A node that has lost its data is young. It has no vote until all leases that were running then have
 * ended, because a quarantine is at least as long as the longest ttl. By then, a key from an old snapshot has
 * expired, too.
 *
 * To save states, clients begin in the order of their numbers. A client whose leases have ended is forgotten, with
 * its keys and its commands: such a SET would leave a key that may be gone at once, and such a release would delete
 * only such a key. Nothing is forgotten with REMEMBER, or in a variant in which a release may delete the keys of
 * others.
 *
 * With WAITING there are reservations as well, see waiting.pml. With SHARING some clients are readers, which may hold
 * the lock together, see sharing.pml. */

#ifndef CLIENTS
#define CLIENTS 2
#endif
#ifndef LOSSES
#define LOSSES 0 /* how many data losses there may be, of all nodes */
#endif
#ifdef QUORUM_HALF
#define QUORUM 1 /* N/2 */
#else
#define QUORUM 2 /* N/2 + 1 */
#endif
#define ALL 7 /* the nodes, as a set */
#define NOBODY 255

#define bit(i) (1 << (i))
#define AS_BITS(set) (set) & 1, (set) >> 1 & 1, (set) >> 2
#define size(set) (((set) & 1) + ((set) >> 1 & 1) + ((set) >> 2 & 1))

/* Lease a belongs to the acquire of client a, and lease a + CLIENTS to its extension. */
#define EXTENSION(a) ((a) + CLIENTS)
#define is_running(lease) (running & bit(lease))

/* The owner in a key, which is all that a script can compare. */
#ifdef ONE_OWNER
#define owner(lease) ((lease) % CLIENTS / 2 * 2) /* the clients 0 and 1 are two attempts of one */
#else
#define owner(lease) ((lease) % CLIENTS)
#endif

byte running;     /* leases */
byte key[3];      /* of a node: the lease of its key, or NOBODY */
byte waits[3];    /* of a node: the leases that must end before its quarantine is over */
byte had[3];      /* of a node: the leases whose keys it has had; an old snapshot may bring one back */
byte losses;      /* so far */
byte begun;       /* clients */
byte followed;    /* holders after which a client acquired that may not hold together with them */

/* Sets of nodes, for each client: commands on their way, and executed commands whose replies may be counted. */
byte sets[CLIENTS], granted[CLIENTS];
byte extends[CLIENTS], confirmed[CLIENTS];
byte releases[CLIENTS];
bool holds[CLIENTS], extended[CLIENTS], let_go[CLIENTS];

#define valid(a) (holds[a] && (is_running(a) || (extended[a] && is_running(EXTENSION(a)))))
#if CLIENTS == 2
#define sum_of_all(what) (what(0) + what(1))
#else
#define sum_of_all(what) (what(0) + what(1) + what(2))
#endif
#define held_bit(a) (holds[a] * bit(a))
#define EVERYBODY (bit(CLIENTS) - 1)
#define FOLLOW(a)                                                                                                      \
    followed = (followed | (sum_of_all(held_bit) & may_not_be_beside(a))) & ~bit(a);                                   \
    assert(exclusive)
#define is_young(n) (waits[n] != 0)
#if defined(REMEMBER) || defined(ONE_OWNER) || defined(RELEASE_DOES_NOT_COMPARE) || defined(HAND_OVER_DOES_NOT_COMPARE)
#define is_forgotten(a) false
#else
#define is_forgotten(a) (!is_running(a) && !is_running(EXTENSION(a)))
#endif
#define is_ours(n, a) (key[n] != NOBODY && is_lease(key[n]) && bears_owner(key[n]) && owner(key[n]) == owner(a))

/* The client counts the reply unless it has decided. */
#define COUNT_GRANT(a, n)                                                                                              \
    if                                                                                                                 \
    :: !let_go[a] && !holds[a] -> granted[a] = granted[a] | bit(n)                                                     \
    :: else                                                                                                            \
    fi

#ifdef SHARING
#include "sharing.pml"
#else
#define exclusive (sum_of_all(valid) <= 1)
#define may_not_be_beside(a) EVERYBODY
#define may_be_gone(n) (key[n] == NOBODY || !is_running(key[n]))
#define is_reader(a) false
#define is_lease(key) true
#define deletes_marker(n) false
#define CHOOSE_READERS
#define ON_JOIN(a, n)
#define ON_LEAVE(a, n)
#define ON_STAY(a, n)
#define FORGET_ENTRY(n, a) skip
#define LOSES_ENTRIES(n) skip
#define BRINGS_BACK_ENTRY(n, lease) key[n] = lease
#endif

#ifdef WAITING
/* A reservation can only matter if a command on its way could find it. With REMEMBER, all reservations are made. */
#ifdef REMEMBER
#define may_wait(a, n) true
#else
#define may_wait(a, n) (!let_go[a] && ((sets[a] | extends[a]) & bit(n)))
#endif
#include "waiting.pml"
#else
#define bears_owner(key) true
#define may_set(n, a) (!is_young(n) && may_be_gone(n))
#define SET_KEY(a, n) PLAIN_SET_KEY(a, n)
#define HANDS_OVER(a, n)
#define WAIT_RESERVES(a, n)
#define WITNESS_HOLD(a) skip
#endif

proctype Client(byte a) {
    d_step {
#ifdef ONE_OWNER
        (a != 1 || let_go[0]) && (a == 0 || begun == a) ->
#else
        begun == a ->
#endif
        begun++;
        printf("client %d begins to acquire\n", a);
        running = running | bit(a);
        sets[a] = ALL
    }
    if
    :: d_step {
        size(granted[a]) >= QUORUM && is_running(a) ->
        printf("client %d ACQUIRES: granted by the nodes %d%d%d\n", a, AS_BITS(granted[a]));
        WITNESS_HOLD(a);
        holds[a] = true;
        granted[a] = 0;
#ifdef RELEASE_BEFORE_THE_END
        releases[a] = ALL;
#endif
#ifdef VALIDITY_FROM_THE_REPLY
        extended[a] = true; /* like a lease that begins now, and that no key belongs to */
        running = running | bit(EXTENSION(a));
#endif
        FOLLOW(a)
    }
#ifdef EXTEND
        if
        :: d_step {
            is_running(a) ->
            printf("client %d begins to extend\n", a);
            running = running | bit(EXTENSION(a));
            extends[a] = ALL
        }
            if
            :: d_step {
#ifdef LATE_CONFIRMATION
                size(confirmed[a]) >= QUORUM && is_running(EXTENSION(a)) ->
#else
                size(confirmed[a]) >= QUORUM && is_running(EXTENSION(a)) && is_running(a) ->
#endif
                printf("client %d HAS EXTENDED: confirmed by the nodes %d%d%d\n", a, AS_BITS(confirmed[a]));
#ifdef WITNESS /* false on purpose: a client can extend after all restarts */
                assert(losses < LOSSES);
#endif
                extended[a] = true;
                confirmed[a] = 0;
                assert(!(followed & bit(a)));
                assert(exclusive)
            }
            :: true
            fi
        :: true
        fi
#endif
    :: true
    fi;
    d_step {
        printf("client %d lets go\n", a);
        holds[a] = false;
        followed = followed & ~bit(a);
        let_go[a] = true;
        granted[a] = 0;
        confirmed[a] = 0;
        if :: !is_forgotten(a) -> releases[a] = ALL :: else fi
    }
}

/* The scripts. Each is one step. */

#define PLAIN_SET_KEY(a, n)                                                                                            \
    key[n] = a;                                                                                                        \
    had[n] = (had[n] | bit(a)) & running
#define ON_SET(a, n)                                                                                                   \
    :: d_step {                                                                                                        \
        !is_reader(a) && (sets[a] & bit(n)) && may_set(n, a) ->                                                                         \
        printf("    node %d grants client %d\n", n, a);                                                                \
        sets[a] = sets[a] & ~bit(n);                                                                                   \
        SET_KEY(a, n);                                                                                                 \
        COUNT_GRANT(a, n)                                                                                              \
    }

#ifdef RELEASE_DOES_NOT_COMPARE
#define may_release(n, a) (key[n] != NOBODY)
#else
#define may_release(n, a) (is_ours(n, a) || deletes_marker(n))
#endif
#define ON_RELEASE(a, n)                                                                                               \
    :: d_step {                                                                                                        \
        !is_reader(a) && (releases[a] & bit(n)) && may_release(n, a) ->                                                                 \
        printf("    node %d deletes its key, for client %d\n", n, a);                                                  \
        releases[a] = releases[a] & ~bit(n);                                                                           \
        key[n] = NOBODY                                                                                                \
    }                                                                                                                  \
    HANDS_OVER(a, n)

#ifdef EXTEND_MAKES_KEYS
#define may_extend(n, a) (is_ours(n, a) || may_be_gone(n)) /* even during the quarantine */
#else
#define may_extend(n, a) (is_ours(n, a) && !is_young(n))
#endif
#define ON_EXTEND(a, n)                                                                                                \
    :: d_step {                                                                                                        \
        !is_reader(a) && (extends[a] & bit(n)) && may_extend(n, a) ->                                                                   \
        printf("    node %d extends the key of client %d\n", n, a);                                                    \
        extends[a] = extends[a] & ~bit(n);                                                                             \
        key[n] = EXTENSION(a);                                                                                         \
        had[n] = (had[n] | bit(EXTENSION(a))) & running;                                                               \
        if :: !let_go[a] && !extended[a] -> confirmed[a] = confirmed[a] | bit(n) :: else fi                            \
    }

/* A node restarts empty, executes FLUSHALL, or restarts with an old snapshot. */
#ifdef QUARANTINE
#define BECOMES_YOUNG(n) waits[n] = running
#else
#define BECOMES_YOUNG(n) skip
#endif
#define LOSES_ALL(n)                                                                                                   \
    :: d_step {                                                                                                        \
        losses < LOSSES ->                                                                                             \
        printf("node %d LOSES ITS DATA\n", n);                                                                         \
        losses++;                                                                                                      \
        LOSES_ENTRIES(n);                                                                                              \
        key[n] = NOBODY;                                                                                               \
        BECOMES_YOUNG(n)                                                                                               \
    }
#define BRINGS_BACK(n, lease)                                                                                          \
    :: d_step {                                                                                                        \
        losses < LOSSES && (had[n] & running & bit(lease)) ->                                                          \
        printf("node %d RESTARTS with a snapshot: the key of lease %d\n", n, lease);                                   \
        losses++;                                                                                                      \
        BRINGS_BACK_ENTRY(n, lease);                                                                                   \
        BECOMES_YOUNG(n)                                                                                               \
    }

/* Time passes when the validity of a lease ends. */
#define AGES(n)                                                                                                        \
    had[n] = had[n] & running;                                                                                         \
    if                                                                                                                 \
    :: is_young(n) && !(waits[n] & running) ->                                                                         \
        printf("    the quarantine of node %d is over\n", n);                                                          \
        waits[n] = 0;                                                                                                  \
        LOSES_ENTRIES(n);                                                                                              \
        OLD_KEY_EXPIRES(n)                                                                                             \
    :: else -> waits[n] = waits[n] & running                                                                           \
    fi
#if defined(EXTEND_MAKES_KEYS) || defined(CLAIM_WITHOUT_MARKER)
#define OLD_KEY_EXPIRES(n) skip /* here the key may be newer than the restart */
#else
#define OLD_KEY_EXPIRES(n) key[n] = NOBODY
#endif
#define FORGET_KEY(n, a)                                                                                               \
    if                                                                                                                 \
    :: key[n] != NOBODY && is_lease(key[n]) && key[n] % CLIENTS == a -> key[n] = NOBODY                                                    \
    :: else                                                                                                            \
    fi
#define FORGET(a)                                                                                                      \
    if                                                                                                                 \
    :: is_forgotten(a) ->                                                                                              \
        sets[a] = 0;                                                                                                   \
        extends[a] = 0;                                                                                                \
        releases[a] = 0;                                                                                               \
        granted[a] = 0;                                                                                                \
        confirmed[a] = 0;                                                                                              \
        FORGET_KEY(0, a);                                                                                              \
        FORGET_KEY(1, a);                                                                                              \
        FORGET_KEY(2, a);                                                                                              \
        FORGET_ENTRY(0, a);                                                                                            \
        FORGET_ENTRY(1, a);                                                                                            \
        FORGET_ENTRY(2, a)                                                                                               \
    :: else                                                                                                            \
    fi
#ifdef EXTEND_SHORTENS
#define may_end(lease) true /* the extension may have a shorter ttl */
#else
#define may_end(lease) (lease < CLIENTS || !is_running(lease - CLIENTS))
#endif
#define ENDS(lease)                                                                                                    \
    :: d_step {                                                                                                        \
        is_running(lease) && may_end(lease) ->                                                                         \
        printf("        the validity of lease %d ends\n", lease);                                                      \
        running = running & ~bit(lease);                                                                               \
        AGES(0);                                                                                                       \
        AGES(1);                                                                                                       \
        AGES(2);                                                                                                       \
        FORGET((lease) % CLIENTS)                                                                                      \
    }

#define AT_ALL_NODES(event, a) event(a, 0) event(a, 1) event(a, 2)
#define FOR_ALL_CLIENTS2(event) AT_ALL_NODES(event, 0) AT_ALL_NODES(event, 1)
#if CLIENTS == 2
#define FOR_ALL_CLIENTS(event) FOR_ALL_CLIENTS2(event)
#define FOR_ALL_LEASES(event) event(0) event(1) event(2) event(3)
#define WITH_ALL_LEASES(event, n) event(n, 0) event(n, 1) event(n, 2) event(n, 3)
#else
#define FOR_ALL_CLIENTS(event) FOR_ALL_CLIENTS2(event) AT_ALL_NODES(event, 2)
#define FOR_ALL_LEASES(event) event(0) event(1) event(2) event(3) event(4) event(5)
#define WITH_ALL_LEASES(event, n) event(n, 0) event(n, 1) event(n, 2) event(n, 3) event(n, 4) event(n, 5)
#endif

/* The search need not continue when no client can acquire or extend beside or after another one. */
#ifdef EXTEND
#define may_extend_yet(a) (holds[a] && !extended[a])
#else
#define may_extend_yet(a) false
#endif
#define may_succeed(a) (a >= begun || (!let_go[a] && !is_forgotten(a) && (!holds[a] || may_extend_yet(a))))
#define matters(a) (may_succeed(a) || valid(a))
#define was_followed(a) (may_extend_yet(a) && (followed & bit(a)))
#if defined(REMEMBER)
#define is_open true
#elif CLIENTS == 2
#define is_open (sum_of_all(matters) > 1 || was_followed(0) || was_followed(1))
#else
#define is_open (sum_of_all(matters) > 1 || was_followed(0) || was_followed(1) || was_followed(2))
#endif

proctype World() provided(is_open) {
end:
    do
    FOR_ALL_CLIENTS(ON_SET)
    FOR_ALL_CLIENTS(ON_RELEASE)
    FOR_ALL_CLIENTS(WAIT_RESERVES)
    FOR_ALL_CLIENTS(ON_JOIN)
    FOR_ALL_CLIENTS(ON_LEAVE)
#ifdef EXTEND
    FOR_ALL_CLIENTS(ON_EXTEND)
    FOR_ALL_CLIENTS(ON_STAY)
#endif
#if LOSSES > 0
    LOSES_ALL(0) LOSES_ALL(1) LOSES_ALL(2)
    WITH_ALL_LEASES(BRINGS_BACK, 0) WITH_ALL_LEASES(BRINGS_BACK, 1) WITH_ALL_LEASES(BRINGS_BACK, 2)
#endif
    FOR_ALL_LEASES(ENDS)
    od
}

init {
    CHOOSE_READERS
    d_step {
        key[0] = NOBODY;
        key[1] = NOBODY;
        key[2] = NOBODY
    }
    atomic {
        run World();
        run Client(0);
        run Client(1);
#if CLIENTS == 3
        run Client(2)
#endif
    }
}
