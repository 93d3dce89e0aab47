/* Shared locks, with -DSHARING: an addition to exclusion.pml. Any clients may be readers.
 *
 * A node has a set of entries, one for each reader, and each expires by itself. As long as there is an entry, the key
 * of the resource holds the marker, which has no owner. The marker excludes exclusive locks, because their SET NX
 * finds a key. It expires with the last of the entries.
 *
 * An entry is the set of the leases of its reader for which it was created or extended. It may expire when none of
 * them is running: from then on at any moment or never, as a key does. In the model each command then finds it gone.
 * An entry that still exists could be extended, but this changes nothing, because such an extension can no longer be
 * confirmed. */

#define MARKER 254
#define is_lease(key) ((key) != MARKER)
#define is_reader(a) ((readers >> (a)) & 1)
#define WRITERS (EVERYBODY & ~readers)
#define entry(a) (bit(a) | bit(EXTENSION(a)))

byte readers;    /* clients */
byte entries[3]; /* of a node: the leases in the entries of its readers */

#define CHOOSE_READERS                                                                                                 \
    if                                                                                                                 \
    :: readers = 1                                                                                                     \
    :: readers = 2                                                                                                     \
    :: readers = 3                                                                                                     \
    :: readers = 4 % EVERYBODY                                                                                         \
    :: readers = 5 % EVERYBODY                                                                                         \
    :: readers = 6 % EVERYBODY                                                                                         \
    fi;

#define may_not_be_beside(a) (is_reader(a) -> WRITERS : EVERYBODY)
#define valid_writer(a) (valid(a) && !is_reader(a))
#define exclusive (sum_of_all(valid_writer) == 0 || sum_of_all(valid) == 1)

#ifdef RELEASE_DELETES_THE_MARKER
#define deletes_marker(n) (key[n] == MARKER)
#else
#define deletes_marker(n) false
#endif

/* The expiry of the marker. */
#ifdef ONE_EXPIRY /* the latest reader decides the expiry of all */
byte last[3];
#define may_marker_be_gone(n) (!is_running(last[n]))
#define DECIDES_EXPIRY(n, lease) last[n] = lease
#else
#define may_marker_be_gone(n) (!(entries[n] & running))
#define DECIDES_EXPIRY(n, lease) skip
#endif
#define is_gone_or_may_be(n)                                                                                           \
    (key[n] == NOBODY || (key[n] == MARKER && may_marker_be_gone(n)) || (key[n] < MARKER && !is_running(key[n])))
#ifdef EXCLUSIVE_IGNORES_READERS
#define may_be_gone(n) (key[n] == MARKER || is_gone_or_may_be(n))
#else
#define may_be_gone(n) is_gone_or_may_be(n)
#endif

#define PRUNE(n) entries[n] = entries[n] & running
#ifdef LEAVE_DOES_NOT_COMPARE
#define UNMARK(n) key[n] = NOBODY
#else
#define UNMARK(n)                                                                                                      \
    if                                                                                                                 \
    :: key[n] == MARKER -> key[n] = NOBODY                                                                             \
    :: else                                                                                                            \
    fi
#endif

#define ON_JOIN(a, n)                                                                                                  \
    :: d_step {                                                                                                        \
        is_reader(a) && (sets[a] & bit(n)) && !is_young(n) && (key[n] == MARKER || is_gone_or_may_be(n)) ->            \
        printf("    node %d grants client %d, a reader\n", n, a);                                                      \
        sets[a] = sets[a] & ~bit(n);                                                                                   \
        PRUNE(n);                                                                                                      \
        entries[n] = entries[n] | bit(a);                                                                              \
        had[n] = (had[n] | bit(a)) & running;                                                                          \
        DECIDES_EXPIRY(n, a);                                                                                          \
        key[n] = MARKER;                                                                                               \
        COUNT_GRANT(a, n)                                                                                              \
    }

/* A release also removes the marker if the entry of its reader has gone already. */
#define ON_LEAVE(a, n)                                                                                                 \
    :: d_step {                                                                                                        \
        is_reader(a) && (releases[a] & bit(n)) ->                                                                      \
        printf("    node %d forgets the reader %d\n", n, a);                                                           \
        releases[a] = releases[a] & ~bit(n);                                                                           \
        PRUNE(n);                                                                                                      \
        entries[n] = entries[n] & ~entry(a);                                                                           \
        if                                                                                                             \
        :: entries[n] == 0 -> UNMARK(n)                                                                                \
        :: else                                                                                                        \
        fi                                                                                                             \
    }

#ifdef STAY_MAKES_THE_MARKER
#define may_stay(n, a) ((entries[n] & entry(a)) || is_gone_or_may_be(n))
#else
#define may_stay(n, a) ((entries[n] & entry(a)) && key[n] == MARKER && !is_young(n))
#endif
#define ON_STAY(a, n)                                                                                                  \
    :: d_step {                                                                                                        \
        is_reader(a) && (extends[a] & bit(n)) && may_stay(n, a) ->                                                     \
        printf("    node %d extends the entry of client %d\n", n, a);                                                  \
        extends[a] = extends[a] & ~bit(n);                                                                             \
        PRUNE(n);                                                                                                      \
        entries[n] = entries[n] | bit(EXTENSION(a));                                                                   \
        had[n] = (had[n] | bit(EXTENSION(a))) & running;                                                               \
        DECIDES_EXPIRY(n, EXTENSION(a));                                                                               \
        key[n] = MARKER;                                                                                               \
        if :: !let_go[a] && !extended[a] -> confirmed[a] = confirmed[a] | bit(n) :: else fi                            \
    }

#define FORGET_ENTRY(n, a)                                                                                             \
    if                                                                                                                 \
    :: entries[n] & entry(a) ->                                                                                        \
        entries[n] = entries[n] & ~entry(a);                                                                           \
        if                                                                                                             \
        :: entries[n] == 0 && key[n] == MARKER -> key[n] = NOBODY                                                      \
        :: else                                                                                                        \
        fi                                                                                                             \
    :: else                                                                                                            \
    fi
#define LOSES_ENTRIES(n) entries[n] = 0
#define BRINGS_BACK_ENTRY(n, lease)                                                                                    \
    if                                                                                                                 \
    :: is_reader(lease % CLIENTS) ->                                                                                   \
        entries[n] = bit(lease);                                                                                       \
        key[n] = MARKER                                                                                                \
    :: else ->                                                                                                         \
        entries[n] = 0;                                                                                                \
        key[n] = lease                                                                                                 \
    fi
