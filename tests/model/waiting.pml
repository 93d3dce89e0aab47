/* Waiting, with -DWAITING: an addition to exclusion.pml and fencing.pml for a queue of waiters. It has reservations,
 * hand-over and claims.
 *
 * The model does not rely on the queue. A reservation may be made for any client that may still acquire: by a release
 * in place of the deleted key, or by a WAIT at any moment at which the key may be gone. This covers every queue: on
 * one node or several, in any order, lost, left over or hostile, with a living or a dead client in front. A
 * reservation may expire at any moment or never: either a SET NX finds it gone, or the SET NX is refused.
 *
 * An acquire is a claim: it sends a CLAIM to all nodes. A refused CLAIM is one that never arrives. This covers the
 * SET NX that a claim sends to the other nodes, and therefore also an ordinary acquire. A client may begin its claim
 * at any moment, woken or not.
 *
 * A reservation has the owner of the future claim. Therefore extensions, releases and second rounds of fencing take
 * it for ours. With TICKETS it has another value, which no key of a holder ever has. */

#define RESERVED(a) (12 + (a)) /* larger than all leases, never running, and RESERVED(a) % CLIENTS == a */
#define is_reserved(key) ((key) != NOBODY && (key) >= RESERVED(0))
#define is_reserved_for(n, a) (key[n] == RESERVED(a))
#ifdef TICKETS
#define bears_owner(key) (!is_reserved(key))
#else
#define bears_owner(key) true
#endif

#define RESERVE(a, n)                                                                                                  \
    key[n] = RESERVED(a);                                                                                              \
    COUNT_RESERVATION(a, n)
#ifdef RESERVATION_IS_A_VOTE
#define COUNT_RESERVATION(a, n) COUNT_GRANT(a, n)
#else
#define COUNT_RESERVATION(a, n) skip
#endif

#ifdef WAIT_RESERVES_HELD
#define may_reserve(n) true
#else
#define may_reserve(n) may_be_gone(n)
#endif
#ifdef HEIR_WITNESS
#define WAIT_RESERVES(a, n)
#else
#define WAIT_RESERVES(a, n)                                                                                            \
    :: d_step {                                                                                                        \
        may_wait(a, n) && may_reserve(n) && !is_reserved_for(n, a) ->                                                  \
        printf("    node %d is reserved for client %d, which waits\n", n, a);                                          \
        RESERVE(a, n)                                                                                                  \
    }
#endif

#ifdef HAND_OVER_DOES_NOT_COMPARE
#define may_hand_over(n, a) (key[n] != NOBODY)
#else
#define may_hand_over(n, a) (is_ours(n, a) WITNESS_HAND_OVER(a))
#endif
#define HANDS_OVER_TO(heir, a, n)                                                                                      \
    :: d_step {                                                                                                        \
        (releases[a] & bit(n)) && may_hand_over(n, a) && may_wait(heir, n) ->                                          \
        printf("    node %d is handed over by client %d, reserved for client %d\n", n, a, heir);                       \
        releases[a] = releases[a] & ~bit(n);                                                                           \
        RESERVE(heir, n)                                                                                               \
    }
#if CLIENTS == 2
#define HANDS_OVER(a, n) HANDS_OVER_TO(0, a, n) HANDS_OVER_TO(1, a, n)
#else
#define HANDS_OVER(a, n) HANDS_OVER_TO(0, a, n) HANDS_OVER_TO(1, a, n) HANDS_OVER_TO(2, a, n)
#endif

/* A CLAIM is granted if the key is gone or ours. It never shortens the expiry. */
#if defined(CLAIM_DOES_NOT_COMPARE)
#define may_be_claimed(n, a) true
#elif defined(TICKETS)
#define may_be_claimed(n, a) may_be_gone(n)
#else
#define may_be_claimed(n, a) (may_be_gone(n) || is_ours(n, a))
#endif
#ifdef CLAIM_WITHOUT_MARKER
#define may_set(n, a) (may_be_claimed(n, a) && (!is_young(n) || is_reserved_for(n, a)))
#else
#define may_set(n, a) (may_be_claimed(n, a) && !is_young(n))
#endif
#if defined(CLAIM_KEEPS_RESERVATION)
#define is_left(n, a) is_reserved_for(n, a)
#elif defined(CLAIM_SHORTENS)
#define is_left(n, a) false
#else
#define is_left(n, a) (key[n] == EXTENSION(a))
#endif
#define SET_KEY(a, n)                                                                                                  \
    WITNESS_CLAIM(a, n);                                                                                               \
    if                                                                                                                 \
    :: is_left(n, a)                                                                                                   \
    :: else -> PLAIN_SET_KEY(a, n)                                                                                     \
    fi

/* False on purpose. HEIR_WITNESS: no client holds the lock by the grant of a node that a holder has handed over to it.
 * (In this variant only holders reserve.) EXPIRY_WITNESS: no client holds the lock by the grant of a node that was
 * reserved for another client. */
#if defined(HEIR_WITNESS) || defined(EXPIRY_WITNESS)
bool witnessed[CLIENTS], has_held[CLIENTS];
#ifdef HEIR_WITNESS
#define is_witness(n, a) is_reserved_for(n, a)
#define WITNESS_HAND_OVER(a) && has_held[a]
#else
#define is_witness(n, a) (is_reserved(key[n]) && !is_reserved_for(n, a))
#define WITNESS_HAND_OVER(a)
#endif
#define WITNESS_CLAIM(a, n) witnessed[a] = witnessed[a] || (is_witness(n, a) && !let_go[a])
#define WITNESS_HOLD(a)                                                                                                \
    assert(!witnessed[a]);                                                                                             \
    has_held[a] = true
#else
#define WITNESS_HAND_OVER(a)
#define WITNESS_CLAIM(a, n) skip
#define WITNESS_HOLD(a) skip
#endif
