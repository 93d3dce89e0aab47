/* Fencing: a client that acquires after the end of another client's validity gets a larger fence.
 *
 * The model has the acquire with its one or two rounds, on three nodes that count their grants and may lose their
 * counters. Time, messages and quarantine are as in exclusion.pml, with one lease for each client, that of its only
 * acquire. In addition:
 *
 * Counters. They start with any small numbers, because earlier acquires, also failed and crashed ones, may have left
 * them. A missing counter is 0.
 *
 * Clocks of the nodes. A counter starts with the time of its node in microseconds. It never overtakes the time,
 * because counting takes longer than a microsecond. The clocks differ by less than the quarantine. When a node that
 * has lost its counter votes again, its clock is therefore later than that of any node at the loss. Its seed is
 * larger than any count of that moment. In the model, the seed is the least such number, or a number larger than all
 * counts.
 *
 * Release. If a client releases or gives up, its validity ends: from then on its keys may be gone on any node.
 * Releases compare the owner, so they delete nothing else and need no messages here. Old keys from a snapshot have no
 * effect: the node is young, and when its quarantine is over, they have expired.
 *
 * With WAITING there are reservations as well, see waiting.pml. The second round takes them for our keys. A hand-over
 * is a WAIT after the end of a validity.
 *
 * With SHARING any of the clients are readers. A node has an entry for each reader. Nothing is asserted about the
 * fences of two readers, because each may have been counted before the other has determined its fence. */

#define CLIENTS 3
#ifndef LOSSES
#define LOSSES 0 /* how many data losses there may be, of all nodes */
#endif
#define QUORUM 2
#define ALL 7 /* the nodes, as a set */
#define NOBODY 255
#define LIAR 2
#define ABSURD 100 /* a count */

#define bit(i) (1 << (i))
#define AS_BITS(set) (set) & 1, (set) >> 1 & 1, (set) >> 2
#define size(set) (((set) & 1) + ((set) >> 1 & 1) + ((set) >> 2 & 1))

byte running;  /* clients that have begun and whose validity has not ended */
byte key[3];   /* of a node: the client that owns its key, or NOBODY; with SHARING: the clients with an entry */
byte count[3]; /* of a node: its counter, 0 if missing */
byte seed[3];  /* of a node without a counter: the smallest possible seed */
byte waits[3]; /* of a node: the clients whose validity must end before its quarantine is over */
byte losses;   /* so far */
byte begun;    /* clients */
byte top;      /* the largest count so far */
byte highest;  /* the largest fence of any former holder */

/* Sets of nodes, for each client: commands on their way, received grants, nodes that have counted up to its fence. */
byte sets[CLIENTS], granted[CLIENTS], raises[CLIENTS], reached[CLIENTS];
#ifdef RELEASE_MAKES_COUNTERS
byte releases[CLIENTS];
#endif
#ifdef LYING
bool disbelieves[CLIENTS];
#endif
byte counted[9]; /* the count in the grant of node n to client a, at 3 * a + n */
byte fence[CLIENTS];
bool voted[CLIENTS], holds[CLIENTS];

#define is_running(a) (running & bit(a))
#define is_young(n) (waits[n] != 0)
#define may_be_gone(n) (key[n] == NOBODY || !is_running(key[n]))

#ifdef SHARING
byte readers;        /* clients */
byte highest_shared; /* the same for readers */
#define is_reader(a) (readers & bit(a))
#define NO_KEY 0
#define has_key(a, n) (key[n] & bit(a))
#define PUT_KEY(a, n) key[n] = key[n] | bit(a)
#define DROP_KEY(a, n) key[n] = key[n] & ~bit(a)
#define is_free_for(a, n) (!(key[n] & running & (is_reader(a) -> ~readers : ALL)))
#ifdef READERS_AMONG_THEMSELVES
#define must_be_larger(a) true
#else
#define must_be_larger(a) (!is_reader(a))
#endif
#define ASSERT_LARGER(a) assert(fence[a] > highest && (!must_be_larger(a) || fence[a] > highest_shared))
#define TAKE_HIGHEST(a)                                                                                                \
    if                                                                                                                 \
    :: is_reader(a) -> TAKE_LARGER(highest_shared, fence[a])                                                           \
    :: else -> TAKE_LARGER(highest, fence[a])                                                                          \
    fi
#else
#define highest_shared 0
#define NO_KEY NOBODY
#define has_key(a, n) (key[n] == a)
#define PUT_KEY(a, n) key[n] = a
#define DROP_KEY(a, n) key[n] = NOBODY
#define is_free_for(a, n) may_be_gone(n)
#define ASSERT_LARGER(a) assert(fence[a] > highest)
#define TAKE_HIGHEST(a) TAKE_LARGER(highest, fence[a])
#endif

#ifdef WAITING
/* A reservation can only matter if a command on its way could find it. */
#define may_wait(a, n) ((sets[a] | raises[a]) & bit(n))
#include "waiting.pml"
#else
#define is_reserved_for(n, a) false
#define WAIT_RESERVES(a, n)
#endif

#define count_of(a, n, votes) ((votes) & bit(n) -> counted[3 * a + n] : 0)
#define TAKE_LARGER(variable, value)                                                                                   \
    if                                                                                                                 \
    :: value > variable -> variable = value                                                                            \
    :: else                                                                                                            \
    fi
#define TAKE_IF_EXACT(a, n, votes)                                                                                     \
    if                                                                                                                 \
    :: count_of(a, n, votes) == fence[a] -> reached[a] = reached[a] | bit(n)                                           \
    :: else                                                                                                            \
    fi

#define CLEAR_VOTES(a)                                                                                                 \
    granted[a] = 0;                                                                                                    \
    counted[3 * a] = 0;                                                                                                \
    counted[3 * a + 1] = 0;                                                                                            \
    counted[3 * a + 2] = 0
#ifdef LYING
#define FORGET_VOTES(a)                                                                                                \
    if                                                                                                                 \
    :: fence[a] != ABSURD -> CLEAR_VOTES(a)                                                                            \
    :: else -> granted[a] = granted[a] & ~bit(LIAR); counted[3 * a + LIAR] = 0                                         \
    fi
#else
#define FORGET_VOTES(a) CLEAR_VOTES(a)
#endif

/* The client counts any majority of the received replies to its first round. */
#define VOTES(a, votes)                                                                                                \
    :: d_step {                                                                                                        \
        (granted[a] & votes) == votes && is_running(a) ->                                                              \
        TAKE_LARGER(fence[a], count_of(a, 0, votes));                                                                  \
        TAKE_LARGER(fence[a], count_of(a, 1, votes));                                                                  \
        TAKE_LARGER(fence[a], count_of(a, 2, votes));                                                                  \
        TAKE_IF_EXACT(a, 0, votes);                                                                                    \
        TAKE_IF_EXACT(a, 1, votes);                                                                                    \
        TAKE_IF_EXACT(a, 2, votes);                                                                                    \
        voted[a] = true;                                                                                               \
        FORGET_VOTES(a);                                                                                               \
        printf("client %d: largest count %d, from the nodes %d%d%d\n", a, fence[a], AS_BITS(reached[a]))               \
    }

#if defined(REMEMBER)
#define needs_fence(a) true
#elif defined(RELEASE_MAKES_COUNTERS)
#define needs_fence(a) (raises[a] != 0 || releases[a] != 0)
#else
#define needs_fence(a) (raises[a] != 0)
#endif

/* To save states, everything without an effect is dropped. This is a second round on its way to a node that has already
 * counted up to the fence, or to a node on which our key is gone and no SET can create it again. When the validity of a
 * client has ended, it is also all else of that client. With REMEMBER nothing is dropped. */
#define FORGET(a)                                                                                                      \
    if                                                                                                                 \
    :: !is_running(a) && !needs_fence(a) ->                                                                            \
        fence[a] = 0;                                                                                                  \
        FORGET_KEY(a, 0);                                                                                              \
        FORGET_KEY(a, 1);                                                                                              \
        FORGET_KEY(a, 2)                                                                                               \
    :: else                                                                                                            \
    fi
#define FORGET_KEY(a, n)                                                                                               \
    if                                                                                                                 \
    :: has_key(a, n) || is_reserved_for(n, a) -> DROP_KEY(a, n)                                                        \
    :: else                                                                                                            \
    fi
#if defined(REMEMBER) || defined(ROUND_TWO_ANY_KEY) || defined(ROUND_TWO_MAKES_COUNTERS)
#define FORGET_RAISE(n) skip
#define FORGET_RAISE_WITHOUT_KEY(a, n) skip
/* A reservation may replace our key, and a grant to a reader replaces no key. */
#elif defined(WAITING) || defined(SHARING)
#define FORGET_RAISE(n) skip
#define FORGET_RAISE_WITHOUT_KEY(a, n)                                                                                 \
    if                                                                                                                 \
    :: reached[a] & bit(n) -> raises[a] = raises[a] & ~bit(n)                                                          \
    :: else                                                                                                            \
    fi
#else
#define FORGET_RAISE(n)                                                                                                \
    if                                                                                                                 \
    :: key[n] == 0 -> raises[0] = raises[0] & ~bit(n); FORGET(0)                                                       \
    :: key[n] == 1 -> raises[1] = raises[1] & ~bit(n); FORGET(1)                                                       \
    :: key[n] == 2 -> raises[2] = raises[2] & ~bit(n); FORGET(2)                                                       \
    :: else                                                                                                            \
    fi
#define FORGET_RAISE_WITHOUT_KEY(a, n)                                                                                 \
    if                                                                                                                 \
    :: (reached[a] & bit(n)) || key[n] != a && !(sets[a] & bit(n)) -> raises[a] = raises[a] & ~bit(n)                  \
    :: else                                                                                                            \
    fi
#endif

#ifdef LYING
#define BELIEVED(a) (disbelieves[a] -> ALL & ~bit(LIAR) : ALL)
#else
#define BELIEVED(a) ALL
#endif
#ifdef NO_ROUND_TWO
#define is_settled(a) true
#define ROUND_TWO(a) skip
#else
#ifdef ROUND_TWO_WITHOUT_QUORUM
#define is_settled(a) true
#else
#define is_settled(a) (size(reached[a]) >= QUORUM)
#endif
#define ROUND_TWO(a)                                                                                                   \
    if                                                                                                                 \
    :: size(reached[a]) < QUORUM -> raises[a] = BELIEVED(a);                                                           \
        FORGET_RAISE_WITHOUT_KEY(a, 0);                                                                                \
        FORGET_RAISE_WITHOUT_KEY(a, 1);                                                                                \
        FORGET_RAISE_WITHOUT_KEY(a, 2)                                                                                 \
    :: else                                                                                                            \
    fi
#endif

#ifdef DISBELIEF_NEEDS_NO_MAJORITY
#define are_told(a) (granted[a] != 0)
#else
#define are_told(a) (size(granted[a]) >= QUORUM)
#endif

proctype Client(byte a) {
    d_step {
        begun == a -> /* the clients are interchangeable, so they begin in order, which saves states */
        printf("client %d begins to acquire\n", a);
        begun++;
        running = running | bit(a);
        sets[a] = ALL
    }
    atomic {
        if
        VOTES(a, 3)
        VOTES(a, 5)
        VOTES(a, 6)
        VOTES(a, 7)
        fi;
        ROUND_TWO(a)
    }
#ifdef LYING
    atomic {
        if
        :: fence[a] != ABSURD
        :: d_step {
            fence[a] == ABSURD && are_told(a) && is_running(a) && (raises[a] & ~bit(LIAR) & ALL) != ALL - bit(LIAR) ->
            disbelieves[a] = true;
            fence[a] = 0;
            reached[a] = 0;
            TAKE_LARGER(fence[a], count_of(a, 0, granted[a]));
            TAKE_LARGER(fence[a], count_of(a, 1, granted[a]));
            TAKE_IF_EXACT(a, 0, granted[a]);
            TAKE_IF_EXACT(a, 1, granted[a]);
            CLEAR_VOTES(a);
#ifdef WITNESS /* false on purpose: no client rejects a count after another client has held */
            assert(highest == 0);
#endif
            printf("client %d does not believe node 2; largest count %d, from the nodes %d%d%d\n", a, fence[a],
                   AS_BITS(reached[a]))
        }
        ROUND_TWO(a)
        fi
    }
#endif
    d_step {
        is_settled(a) && is_running(a) ->
        printf("client %d ACQUIRES with fence %d; the largest of those before is %d\n", a, fence[a], highest);
        holds[a] = true;
        reached[a] = 0;
#if defined(WITNESS) && !defined(LYING) /* false on purpose: after a new seed, a fence is larger by 1 at most */
        assert(losses < LOSSES || highest == 0 || fence[a] <= highest + 1);
#endif
        ASSERT_LARGER(a)
    }
}

/* The scripts. Each is one step. */

#define GRANT(a, n, number)                                                                                            \
    FORGET_RAISE(n);                                                                                                   \
    sets[a] = sets[a] & ~bit(n);                                                                                       \
    count[n] = number;                                                                                                 \
    seed[n] = 0;                                                                                                       \
    TAKE_LARGER(top, count[n]);                                                                                        \
    if                                                                                                                 \
    :: losses == LOSSES && seed[0] == 0 && seed[1] == 0 && seed[2] == 0 -> top = 0 /* not needed any more */           \
    :: else                                                                                                            \
    fi;                                                                                                                \
    printf("    node %d grants client %d, count %d\n", n, a, count[n]);                                                \
    if                                                                                                                 \
    :: !is_running(a) && !needs_fence(a) -> DROP_KEY(a, n)                                                             \
    :: else -> PUT_KEY(a, n)                                                                                           \
    fi;                                                                                                                \
    if                                                                                                                 \
    :: is_running(a) && !voted[a] ->                                                                                   \
        granted[a] = granted[a] | bit(n);                                                                              \
        counted[3 * a + n] = count[n]                                                                                  \
    :: else                                                                                                            \
    fi
#define may_grant(a, n) ((sets[a] & bit(n)) && !is_young(n) && is_free_for(a, n))
#define ON_SET(a, n)                                                                                                   \
    :: d_step { may_grant(a, n) && count[n] != 0 -> GRANT(a, n, COUNT_ONE(a, n)) }                                     \
    :: d_step { may_grant(a, n) && count[n] == 0 -> GRANT(a, n, EARLY_SEED(n)) }                                       \
    :: d_step { may_grant(a, n) && count[n] == 0 && seed[n] <= top -> GRANT(a, n, top + 1) }                           \
    LIES(a, n)
#ifdef LYING
#define LIES(a, n)                                                                                                     \
    :: d_step {                                                                                                        \
        n == LIAR && may_grant(a, n) && count[n] != 0 && is_running(a) && !voted[a] ->                                 \
        GRANT(a, n, count[n] + 1);                                                                                     \
        counted[3 * a + n] = ABSURD;                                                                                   \
        printf("        and says that it has counted %d\n", ABSURD)                                                    \
    }                                                                                                                  \
    :: d_step {                                                                                                        \
        (raises[a] & bit(n)) && n != LIAR && fence[a] == ABSURD && key[n] == a && count[n] != 0 ->                     \
        raises[a] = raises[a] & ~bit(n);                                                                               \
        granted[a] = granted[a] | bit(n);                                                                              \
        counted[3 * a + n] = count[n];                                                                                 \
        printf("    node %d refuses to be raised for client %d, has counted %d\n", n, a, count[n])                     \
    }
#else
#define LIES(a, n)
#endif
#ifdef CLAIM_DOES_NOT_COUNT
#define COUNT_ONE(a, n) (is_reserved_for(n, a) -> count[n] : count[n] + 1)
#else
#define COUNT_ONE(a, n) count[n] + 1
#endif
#ifdef SEED_ZERO
#define EARLY_SEED(n) 1 /* the first count after 0 */
#else
#define EARLY_SEED(n) seed[n]
#endif

#define RAISE(a, n)                                                                                                    \
    raises[a] = raises[a] & ~bit(n);                                                                                   \
    TAKE_LARGER(count[n], fence[a]);                                                                                   \
    seed[n] = 0;                                                                                                       \
    printf("    node %d raised to %d for client %d\n", n, fence[a], a)
#define REPLY_TO_RAISE(a, n)                                                                                           \
    if                                                                                                                 \
    :: is_running(a) && !holds[a] -> reached[a] = reached[a] | bit(n)                                                  \
    :: else                                                                                                            \
    fi
#ifdef ROUND_TWO_ANY_KEY
#define key_is_fine(a, n) true
#else
#ifdef LYING
#define key_is_fine(a, n) (key[n] == a && fence[a] != ABSURD)
#else
#define key_is_fine(a, n) (has_key(a, n) || is_reserved_for(n, a))
#endif
#endif
#ifdef RAISE_WITNESS /* false on purpose: no second round finds a reservation for its client */
#define WITNESS_RAISE(a, n) assert(!is_reserved_for(n, a) || !is_running(a))
#else
#define WITNESS_RAISE(a, n) skip
#endif
#define ON_RAISE(a, n)                                                                                                 \
    :: d_step {                                                                                                        \
        (raises[a] & bit(n)) && !is_young(n) && key_is_fine(a, n) && count[n] != 0 ->                                  \
        WITNESS_RAISE(a, n);                                                                                           \
        RAISE(a, n);                                                                                                   \
        REPLY_TO_RAISE(a, n);                                                                                          \
        FORGET(a)                                                                                                      \
    }                                                                                                                  \
    MAKES_COUNTER(a, n)
#ifdef ROUND_TWO_MAKES_COUNTERS
/* A script that raises the counter before it compares the owner. With an existing counter, this would be harmless. */
#define MAKES_COUNTER(a, n)                                                                                            \
    :: d_step { (raises[a] & bit(n)) && !is_young(n) && count[n] == 0 -> RAISE(a, n) }
#else
#define MAKES_COUNTER(a, n)
#endif

#ifdef RELEASE_MAKES_COUNTERS
/* A release that stores the fence. It may arrive at any time after the end of the validity. */
#define SEND_RELEASE(a)                                                                                                \
    if                                                                                                                 \
    :: voted[a] -> releases[a] = ALL                                                                                   \
    :: else                                                                                                            \
    fi
#define ON_RELEASE(a, n)                                                                                               \
    :: d_step {                                                                                                        \
        (releases[a] & bit(n)) && count[n] == 0 ->                                                                     \
        releases[a] = releases[a] & ~bit(n);                                                                           \
        count[n] = fence[a];                                                                                           \
        seed[n] = 0;                                                                                                   \
        printf("    node %d gets the counter %d from the release of client %d\n", n, fence[a], a)                      \
    }
#else
#define SEND_RELEASE(a) skip
#define ON_RELEASE(a, n)
#endif

#ifdef QUARANTINE
#define BECOMES_YOUNG(n) waits[n] = running
#else
#define BECOMES_YOUNG(n) skip
#endif
#define LOSE(n, number)                                                                                                \
    printf("node %d LOSES DATA: counter %d\n", n, number);                                                             \
    losses++;                                                                                                          \
    FORGET_RAISE(n);                                                                                                   \
    key[n] = NO_KEY;                                                                                                   \
    count[n] = number;                                                                                                 \
    BECOMES_YOUNG(n)
/* The counters in an old snapshot belong to another run, so no script uses them. */
#define LOSES(n)                                                                                                       \
    :: d_step {                                                                                                        \
        losses < LOSSES ->                                                                                             \
        LOSE(n, 0);                                                                                                    \
        seed[n] = top + 1                                                                                              \
    }                                                                                                                  \
    LOSES_SOME(n, 1)                                                                                                   \
    LOSES_SOME(n, 2)
#ifdef COUNTER_WITHOUT_RUN
#define LOSES_SOME(n, grants) :: d_step { losses < LOSSES && count[n] > grants -> LOSE(n, count[n] - grants) }
#else
#define LOSES_SOME(n, grants)
#endif

#define AGES(a, n)                                                                                                     \
    if                                                                                                                 \
    :: is_young(n) && !(waits[n] & running) ->                                                                         \
        printf("    the quarantine of node %d is over\n", n);                                                          \
        waits[n] = 0                                                                                                   \
    :: else -> waits[n] = waits[n] & running                                                                           \
    fi;                                                                                                                \
    counted[3 * a + n] = 0
#define ENDS(a)                                                                                                        \
    :: d_step {                                                                                                        \
        is_running(a) ->                                                                                               \
        printf("        the validity of client %d ends\n", a);                                                         \
        running = running & ~bit(a);                                                                                   \
        if                                                                                                             \
        :: holds[a] -> TAKE_HIGHEST(a)                                                                                 \
        :: else                                                                                                        \
        fi;                                                                                                            \
        SEND_RELEASE(a);                                                                                               \
        AGES(a, 0);                                                                                                    \
        AGES(a, 1);                                                                                                    \
        AGES(a, 2);                                                                                                    \
        granted[a] = 0;                                                                                                \
        reached[a] = 0;                                                                                                \
        holds[a] = false;                                                                                              \
        LOSE_LATE_RAISES(a);                                                                                           \
        FORGET(a)                                                                                                      \
    }
#if defined(WAITING) && LOSSES > 0 /* too many states */
#define LOSE_LATE_RAISES(a) raises[a] = 0
#else
#define LOSE_LATE_RAISES(a) skip
#endif

#define AT_ALL_NODES(event, a) event(a, 0) event(a, 1) event(a, 2)
#define FOR_ALL_CLIENTS(event) AT_ALL_NODES(event, 0) AT_ALL_NODES(event, 1) AT_ALL_NODES(event, 2)

/* The search need not continue when no client can acquire after another one has held. */
#define may_acquire(a) (a >= begun || is_running(a) && !holds[a])
#define has_held (highest > 0 || highest_shared > 0 || holds[0] || holds[1] || holds[2])
#ifdef REMEMBER
#define is_open true
#else
#define is_open (may_acquire(0) + may_acquire(1) + may_acquire(2) + has_held > 1)
#endif

proctype World() provided(is_open) {
end:
    do
    FOR_ALL_CLIENTS(ON_SET)
    FOR_ALL_CLIENTS(ON_RAISE)
    FOR_ALL_CLIENTS(ON_RELEASE)
    FOR_ALL_CLIENTS(WAIT_RESERVES)
#if LOSSES > 0
    LOSES(0) LOSES(1) LOSES(2)
#endif
    ENDS(0) ENDS(1) ENDS(2)
    od
}

#define START(x, y, z) :: d_step { count[0] = x; count[1] = y; count[2] = z; top = z }

init {
    atomic {
        key[0] = NO_KEY;
        key[1] = NO_KEY;
        key[2] = NO_KEY;
        if /* the nodes are interchangeable, so these are all combinations up to 3 */
#ifndef ONE_START
        START(1, 1, 1)
        START(1, 1, 2)
        START(1, 2, 2)
        START(1, 1, 3)
        START(1, 3, 3)
#endif
        START(1, 2, 3)
        fi;
#if defined(READERS)
        readers = READERS;
#elif defined(SHARING)
        if
        :: readers = 1
        :: readers = 2
        :: readers = 3
        :: readers = 4
        :: readers = 5
        :: readers = 6
#ifdef READERS_AMONG_THEMSELVES
        :: readers = 7
#endif
        fi;
#endif
#ifdef SHARING
        printf("readers: %d%d%d\n", AS_BITS(readers));
#endif
        run World();
        run Client(0);
        run Client(1);
        run Client(2)
    }
}
