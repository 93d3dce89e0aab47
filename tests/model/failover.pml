/* Exclusion if each node is a master with a replica that may be promoted, and promoted back: no two clients hold a
 * lock at once. The model has acquire, extend and the quarantine, on one such node or three.
 *
 * Time and messages are as in exclusion.pml: a key does not expire before the validity of its lease has ended, and a
 * command arrives at any time or never. A release ends the validity. Releases compare the owner, so they need no
 * messages here.
 *
 * A server has a key and a marker. Both are replicated. The marker identifies the dataset: it has the identity of the
 * server that set it, and the leases that were running then. A server has no vote if the marker does not have the
 * server's own identity. It replaces such a marker at some time, and then has no vote until those leases have ended.
 * A server gets a new identity with each promotion and each restart.
 *
 * Replication. A replica copies the data of its master at any time or never. Then its own older data are gone, also
 * what it was sent while it was a master.
 *
 * Promotion. The replica is named as the master of the node. The former master may not know, because it may be cut
 * off. It then `goes_on` as a master for the clients on its side, until it stops for want of replicas, or learns of
 * the promotion and becomes a replica. The quarantine is longer than a ttl by the maximum duration of that phase. So
 * it ends after the leases that were running when the former master stopped. A lease that begins later is not sent to
 * the former master. An earlier command may still arrive there. The former master executes it if it still behaves as
 * a master: it may have been frozen.
 *
 * Shared connections (QUEUE). Many requests share one connection to each server. A request first waits in a queue. One
 * write takes all the acquisitions and extensions that are ready. These are the rules for the code:
 *
 * 1. An acquisition or extension is written only if the connection has no pending replies and gave a sign of life less
 *    than a second ago. Otherwise the connection may lead to a former master that is frozen.
 * 2. The second is measured when the commands are written. If it was measured earlier, the lease may begin later than
 *    the measurement, and the quarantine of the promoted server does not outlast that lease.
 * 3. A reply counts as a sign of life only if the last sign of life, or the beginning of the connection, is less than
 *    a second old when the reply arrives. A server that was frozen also replies when it continues. A connection that
 *    was silent for a second never carries an acquisition or extension again, whatever it replies.
 * 4. The rule about pending replies makes rule 3 work. The server executed the command of a reply before the reply
 *    arrived. If nothing was pending when the command was written, the command was written after the last sign of life,
 *    so the reply is less than a second old. Behind other replies, an old reply could arrive in time.
 * 5. If a connection is given up, the requests in its queue may move to the next connection, for which the Sentinels
 *    are asked. (In the code they end without a vote.) A command that was written is not written again elsewhere.
 * 6. A lease begins, at the latest, just before its first command is written. It may begin when it enters the queue.
 * 7. If there are several lanes (LANES), each has a connection to each server, with a queue. The rules hold for each
 *    connection alone. A sign of life on another lane does not count, because that lane may lead to another server.
 *
 * In the model, a connection gives signs of life as long as its server is named or `goes_on`. The quarantine is longer
 * by that phase, so two seconds for this rule belong to the phase. After it, a reply can still arrive, because the
 * server continues. A lease begins either in the queue or at its first write. In which order a server executes the
 * commands of one write, and how many of them, is left open. */

#ifndef NODES
#define NODES 1
#endif
#ifndef CLIENTS
#define CLIENTS 2
#endif
#ifndef PROMOTIONS
#define PROMOTIONS 2 /* of all nodes */
#endif
#ifndef RESTARTS
#define RESTARTS 0 /* of all servers */
#endif
#ifndef LANES
#define LANES 1 /* sets of connections, with a queue each (QUEUE); two at most, and then NODES is 1 */
#endif
#define QUORUM (NODES / 2 + 1)
#define SERVERS (2 * NODES) /* node n has the servers n and n + NODES */
#define NOBODY 255

#define bit(i) (1 << (i))
#define node_of(s) ((s) % NODES)
#define other(s) (((s) + NODES) % SERVERS)
#define size(set) (((set) & 1) + ((set) >> 1 & 1) + ((set) >> 2 & 1))

/* Lease a belongs to the acquire of client a, and lease a + CLIENTS to its extension. */
#define EXTENSION(a) ((a) + CLIENTS)
#define is_running(lease) (running & bit(lease))

byte running;           /* leases */
byte begun;             /* clients */
byte promotions;        /* so far */
byte restarts;          /* so far */
byte identities;        /* assigned so far */
byte named = bit(NODES) - 1; /* servers that are named as the master of their node */
byte masters;           /* servers that behave as masters */
byte goes_on;           /* former masters that some clients still use */
byte key[SERVERS];      /* the lease of the key, or NOBODY */
byte identity[SERVERS]; /* the current identity of the server */
byte marker[SERVERS];   /* the identity in the marker; 0: no marker */
byte waits[SERVERS];    /* the leases that must end before its quarantine is over */
byte in_quarantine;     /* servers that have set a marker since their promotion */
byte promoted;          /* servers that were promoted at least once */

/* For each client: servers to which commands are on their way, and nodes that have executed them. */
byte sets[CLIENTS], granted[CLIENTS], extends[CLIENTS], confirmed[CLIENTS];
bool holds[CLIENTS], extended[CLIENTS], let_go[CLIENTS];

#define valid(a) (holds[a] && (is_running(a) || (extended[a] && is_running(EXTENSION(a)))))
#if CLIENTS == 2
#define exclusive (valid(0) + valid(1) <= 1)
#else
#define exclusive (valid(0) + valid(1) + valid(2) <= 1)
#endif

/* The servers that a client may take for the master of a node. A QUEUE checks this when it writes. */
#ifdef QUEUE
#define ADDRESSED 0
#elif defined(IDLE_CONNECTION)
#define ADDRESSED (bit(SERVERS) - 1) /* also a server that was named long ago */
#else
#define ADDRESSED (named | goes_on)
#endif

#ifdef MARKER_OF_ANYBODY
#define is_marked(s) (marker[s] != 0)
#else
#define is_marked(s) (marker[s] == identity[s])
#endif
#ifdef NO_BOUND
#define may_others_grant(s) false
#else
#define may_others_grant(s) ((in_quarantine & bit(s)) && (goes_on & bit(other(s))))
#endif
#ifdef NO_QUARANTINE
#define votes(s) (masters & bit(s))
#else
#define votes(s) ((masters & bit(s)) && is_marked(s) && !(waits[s] & running) && !may_others_grant(s))
#endif

/* The queue of the requests, and the write that takes all of them that are ready. */
#ifdef QUEUE
byte queued[2 * CLIENTS]; /* for each lease: servers to which its command is not written yet */
byte pending[LANES];      /* for each lane: servers on whose connection replies are pending */
#define lane_of(lease) (((lease) % CLIENTS + (lease) / CLIENTS) % LANES)
#ifdef CHECKED_IN_QUEUE
byte checked[2 * CLIENTS]; /* for each lease: servers that gave a sign of life when the request entered the queue */
#define CHECK(lease) checked[lease] = named | goes_on
#define was_checked(lease, s) (checked[lease] & bit(s))
#else
#define CHECK(lease) skip
#define was_checked(lease, s) false
#endif
#ifdef LATE_REPLY_COUNTS
byte replied; /* servers that replied later than a second after the last sign of life */
#define REPLIED(s) replied = replied | (bit(s) & ~(named | goes_on))
#define has_replied(s) (replied & bit(s))
#else
#define REPLIED(s) skip
#define has_replied(s) false
#endif
#define BEGINS_LEASE(lease) skip
#define ENTERS_QUEUE(lease)                                                                                            \
    if                                                                                                                 \
    :: d_step {                                                                                                        \
        printf("the lease begins in the queue\n");                                                                     \
        running = running | bit(lease);                                                                                \
        queued[lease] = bit(SERVERS) - 1;                                                                              \
        CHECK(lease)                                                                                                   \
    }                                                                                                                  \
    LATER_START(lease)                                                                                                 \
    fi;
#ifdef STARTS_IN_QUEUE
#define LATER_START(lease)
#else
#define LATER_START(lease)                                                                                             \
    :: d_step {                                                                                                        \
        printf("the lease begins when it is written\n");                                                               \
        queued[lease] = bit(SERVERS) - 1;                                                                              \
        CHECK(lease)                                                                                                   \
    }
#endif
#define LEAVES_QUEUE(a)                                                                                                \
    queued[a] = 0;                                                                                                     \
    queued[EXTENSION(a)] = 0
#ifdef SIGN_OF_THE_NODE
byte heard[LANES];        /* for each lane: servers that have replied in time */
#define HEARD(l, s) heard[l] = heard[l] | (bit(s) & (named | goes_on))
#define is_heard(l, s) (heard[LANES - 1 - (l)] & bit(other(s)) & (named | goes_on))
#else
#define HEARD(l, s) skip
#define is_heard(l, s) false
#endif
#define gives_signs_of_life(s, l) (((named | goes_on) & bit(s)) || has_replied(s) || is_heard(l, s))
#ifdef BEHIND_PENDING
#define may_send(s, l) (gives_signs_of_life(s, l) || (pending[l] & bit(s)))
#else
#define may_send(s, l) (gives_signs_of_life(s, l) && !(pending[l] & bit(s)))
#endif
#define is_ready(lease, s, l)                                                                                          \
    (lane_of(lease) == l && (queued[lease] & bit(s)) && (may_send(s, l) || was_checked(lease, s)))
#define TAKE(lease, commands, s, l)                                                                                    \
    if                                                                                                                 \
    :: is_ready(lease, s, l) ->                                                                                        \
        queued[lease] = queued[lease] & ~bit(s);                                                                       \
        running = running | bit(lease);                                                                                \
        commands[lease % CLIENTS] = commands[lease % CLIENTS] | bit(s)                                                 \
    :: else                                                                                                            \
    fi
#if CLIENTS == 2
#define some_ready(s, l) (is_ready(0, s, l) || is_ready(1, s, l) || is_ready(2, s, l) || is_ready(3, s, l))
#define TAKE_ALL(s, l) TAKE(0, sets, s, l); TAKE(1, sets, s, l); TAKE(2, extends, s, l); TAKE(3, extends, s, l)
#else /* without extensions */
#define some_ready(s, l) (is_ready(0, s, l) || is_ready(1, s, l) || is_ready(2, s, l))
#define TAKE_ALL(s, l) TAKE(0, sets, s, l); TAKE(1, sets, s, l); TAKE(2, sets, s, l)
#endif
#define WRITES(s, l)                                                                                                   \
    :: d_step {                                                                                                        \
        some_ready(s, l) ->                                                                                            \
        printf("    the queue is written to server %d\n", s);                                                          \
        TAKE_ALL(s, l);                                                                                                \
        pending[l] = pending[l] | bit(s)                                                                               \
    }
/* The last pending reply arrives, or a new connection replaces the former one. */
#define HAS_REPLIED(s, l)                                                                                              \
    :: d_step {                                                                                                        \
        (pending[l] & bit(s)) && (masters & bit(s)) ->                                                                 \
        printf("    server %d has replied to everything\n", s);                                                        \
        REPLIED(s);                                                                                                    \
        HEARD(l, s);                                                                                                   \
        pending[l] = pending[l] & ~bit(s)                                                                              \
    }
#define FORGET_QUEUED(lease) queued[lease] = 0
#define has_queued(lease) (queued[lease] != 0)
#else
#define BEGINS_LEASE(lease) running = running | bit(lease)
#define ENTERS_QUEUE(lease)
#define LEAVES_QUEUE(a) skip
#define FORGET_QUEUED(lease) skip
#define has_queued(lease) false
#endif

proctype Client(byte a) {
    atomic {
        d_step {
            begun == a ->
            begun++;
            printf("client %d begins to acquire\n", a);
            BEGINS_LEASE(a);
            sets[a] = ADDRESSED
        }
        ENTERS_QUEUE(a)
    }
    if
    :: d_step {
        size(granted[a]) >= QUORUM && is_running(a) ->
        printf("client %d ACQUIRES\n", a);
        holds[a] = true;
        granted[a] = 0;
        sets[a] = 0;
        FORGET_QUEUED(a);
        assert(exclusive)
    }
#ifdef EXTEND
        if
        :: atomic {
            d_step {
                is_running(a) ->
                printf("client %d begins to extend\n", a);
                BEGINS_LEASE(EXTENSION(a));
                extends[a] = ADDRESSED
            }
            ENTERS_QUEUE(EXTENSION(a))
        }
            if
            :: d_step {
                size(confirmed[a]) >= QUORUM && is_running(EXTENSION(a)) && is_running(a) ->
                printf("client %d HAS EXTENDED\n", a);
                extended[a] = true;
                confirmed[a] = 0;
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
        let_go[a] = true;
        granted[a] = 0;
        confirmed[a] = 0;
        LEAVES_QUEUE(a)
    }
}

/* The scripts. Each is one step. A refused script changes nothing except as in SETS_MARKER. */
#define ON_SET(a, s)                                                                                                   \
    :: d_step {                                                                                                        \
        (sets[a] & bit(s)) && votes(s) && (key[s] == NOBODY || !is_running(key[s])) ->                                 \
        printf("    server %d grants client %d\n", s, a);                                                              \
        sets[a] = sets[a] & ~bit(s);                                                                                   \
        key[s] = a;                                                                                                    \
        WITNESS_GRANT(s);                                                                                              \
        if :: !let_go[a] && !holds[a] -> granted[a] = granted[a] | bit(node_of(s)) :: else fi                          \
    }
#define ON_EXTEND(a, s)                                                                                                \
    :: d_step {                                                                                                        \
        (extends[a] & bit(s)) && votes(s) && key[s] == a ->                                                            \
        printf("    server %d extends the key of client %d\n", s, a);                                                  \
        extends[a] = extends[a] & ~bit(s);                                                                             \
        key[s] = EXTENSION(a);                                                                                         \
        if :: !let_go[a] && !extended[a] -> confirmed[a] = confirmed[a] | bit(node_of(s)) :: else fi                   \
    }
#define SETS_MARKER(s)                                                                                                 \
    :: d_step {                                                                                                        \
        (masters & bit(s)) && marker[s] != identity[s] && !is_marked(s) ->                                             \
        printf("    server %d sets its marker\n", s);                                                                  \
        marker[s] = identity[s];                                                                                       \
        in_quarantine = in_quarantine | bit(s);                                                                        \
        waits[s] = running                                                                                             \
    }
#ifdef WITNESS /* false on purpose: a server that was demoted and promoted back can grant */
#define WITNESS_GRANT(s) assert(!(promoted & bit(s)) || !(promoted & bit(other(s))))
#else
#define WITNESS_GRANT(s) skip
#endif

#define NEW_IDENTITY(s)                                                                                                \
    identities++;                                                                                                      \
    identity[s] = identities
#ifdef RUN_ALONE
#define IDENTITY_OF_PROMOTED(s) skip
#else
#define IDENTITY_OF_PROMOTED(s) NEW_IDENTITY(s)
#endif
#ifdef QUEUE /* which writes to all servers anyway */
#define ADDRESS_TOO(a, s) skip
#else
#define ADDRESS_TOO(a, s)                                                                                              \
    if                                                                                                                 \
    :: is_running(a) && !holds[a] && !let_go[a] -> sets[a] = sets[a] | bit(s)                                          \
    :: else                                                                                                            \
    fi;                                                                                                                \
    if                                                                                                                 \
    :: is_running(EXTENSION(a)) && !extended[a] && !let_go[a] -> extends[a] = extends[a] | bit(s)                      \
    :: else                                                                                                            \
    fi
#endif
#if CLIENTS == 2
#define ADDRESS_ALL_TOO(s) ADDRESS_TOO(0, s); ADDRESS_TOO(1, s)
#else
#define ADDRESS_ALL_TOO(s) ADDRESS_TOO(0, s); ADDRESS_TOO(1, s); ADDRESS_TOO(2, s)
#endif
#define IS_PROMOTED(s)                                                                                                 \
    :: d_step {                                                                                                        \
        promotions < PROMOTIONS && !(masters & bit(s)) ->                                                              \
        printf("server %d IS PROMOTED\n", s);                                                                          \
        promotions++;                                                                                                  \
        PROMOTED(s);                                                                                                   \
        goes_on = goes_on | (masters & bit(other(s)));                                                                 \
        masters = masters | bit(s);                                                                                    \
        in_quarantine = in_quarantine & ~bit(s);                                                                       \
        named = named & ~bit(other(s)) | bit(s);                                                                       \
        IDENTITY_OF_PROMOTED(s);                                                                                       \
        ADDRESS_ALL_TOO(s)                                                                                             \
    }
#ifdef WITNESS
#define PROMOTED(s) promoted = promoted | bit(s)
#else
#define PROMOTED(s) skip
#endif
#define STOP(s)                                                                                                        \
    if                                                                                                                 \
    :: goes_on & bit(s) ->                                                                                             \
        goes_on = goes_on & ~bit(s);                                                                                   \
        if                                                                                                             \
        :: in_quarantine & bit(other(s)) -> waits[other(s)] = waits[other(s)] | running                                \
        :: else                                                                                                        \
        fi                                                                                                             \
    :: else                                                                                                            \
    fi
#define STOPS(s)                                                                                                       \
    :: d_step {                                                                                                        \
        goes_on & bit(s) ->                                                                                            \
        printf("    server %d stops\n", s);                                                                            \
        STOP(s)                                                                                                        \
    }
#define BECOMES_REPLICA(s)                                                                                             \
    :: d_step {                                                                                                        \
        (masters & bit(s)) && !(named & bit(s)) ->                                                                     \
        printf("    server %d becomes a replica\n", s);                                                                \
        STOP(s);                                                                                                       \
        masters = masters & ~bit(s)                                                                                    \
    }
#define IS_REPLICATED_TO(s)                                                                                            \
    :: d_step {                                                                                                        \
        !(masters & bit(s)) && (masters & bit(other(s))) &&                                                            \
            (key[s] != key[other(s)] || marker[s] != marker[other(s)] || waits[s] != waits[other(s)]) ->               \
        printf("    server %d takes over the data of server %d\n", s, other(s));                                       \
        key[s] = key[other(s)];                                                                                        \
        marker[s] = marker[other(s)];                                                                                  \
        waits[s] = waits[other(s)]                                                                                     \
    }
/* The old snapshot may have the marker and lack the key. */
#define RESTARTS_OLD(s)                                                                                                \
    :: d_step {                                                                                                        \
        restarts < RESTARTS ->                                                                                         \
        printf("server %d RESTARTS\n", s);                                                                             \
        restarts++;                                                                                                    \
        key[s] = NOBODY;                                                                                               \
        IDENTITY_OF_RESTARTED(s)                                                                                       \
    }
#ifdef REPLICATION_ALONE
#define IDENTITY_OF_RESTARTED(s) skip
#else
#define IDENTITY_OF_RESTARTED(s) NEW_IDENTITY(s)
#endif

/* An ended lease has no effect any more: its keys may be gone at once, and its commands can grant nothing. */
#define AGE(s)                                                                                                         \
    waits[s] = waits[s] & running;                                                                                     \
    if                                                                                                                 \
    :: key[s] != NOBODY && !is_running(key[s]) -> key[s] = NOBODY                                                      \
    :: else                                                                                                            \
    fi
#if NODES == 1
#define AGE_ALL AGE(0); AGE(1)
#else
#define AGE_ALL AGE(0); AGE(1); AGE(2); AGE(3); AGE(4); AGE(5)
#endif
#define ENDS(lease)                                                                                                    \
    :: d_step {                                                                                                        \
        is_running(lease) && (lease < CLIENTS || !is_running(lease - CLIENTS)) ->                                      \
        printf("        the validity of lease %d ends\n", lease);                                                      \
        running = running & ~bit(lease);                                                                               \
        AGE_ALL;                                                                                                       \
        FORGET_QUEUED(lease);                                                                                          \
        if                                                                                                             \
        :: lease < CLIENTS -> sets[lease % CLIENTS] = 0; granted[lease % CLIENTS] = 0                                  \
        :: else -> extends[lease % CLIENTS] = 0; confirmed[lease % CLIENTS] = 0                                        \
        fi                                                                                                             \
    }

#if LANES == 1
#define ON_ALL_LANES(event) event(0, 0) event(1, 0)
#else
#define ON_ALL_LANES(event) event(0, 0) event(1, 0) event(0, 1) event(1, 1)
#endif
#if NODES == 1
#define AT_ALL_SERVERS(event) event(0) event(1)
#define WITH_ALL_SERVERS(event, a) event(a, 0) event(a, 1)
#else
#define AT_ALL_SERVERS(event) event(0) event(1) event(2) event(3) event(4) event(5)
#define WITH_ALL_SERVERS(event, a) event(a, 0) event(a, 1) event(a, 2) event(a, 3) event(a, 4) event(a, 5)
#endif
#if CLIENTS == 2
#define FOR_ALL_CLIENTS(event) WITH_ALL_SERVERS(event, 0) WITH_ALL_SERVERS(event, 1)
#define FOR_ALL_LEASES(event) event(0) event(1) event(2) event(3)
#else
#define FOR_ALL_CLIENTS(event) WITH_ALL_SERVERS(event, 0) WITH_ALL_SERVERS(event, 1) WITH_ALL_SERVERS(event, 2)
#define FOR_ALL_LEASES(event) event(0) event(1) event(2) event(3) event(4) event(5)
#endif

/* The search need not continue when no two clients can hold the lock at once any more. */
#define may_succeed(a)                                                                                                 \
    (a >= begun ||                                                                                                     \
     (!let_go[a] && (is_running(a) || is_running(EXTENSION(a)) || has_queued(a) || has_queued(EXTENSION(a)))))
#if CLIENTS == 2
#define is_open (may_succeed(0) + may_succeed(1) > 1)
#else
#define is_open (may_succeed(0) + may_succeed(1) + may_succeed(2) > 1)
#endif

proctype World() provided(is_open) {
end:
    do
    FOR_ALL_CLIENTS(ON_SET)
#ifdef EXTEND
    FOR_ALL_CLIENTS(ON_EXTEND)
#endif
#ifdef QUEUE
    ON_ALL_LANES(WRITES)
    ON_ALL_LANES(HAS_REPLIED)
#endif
    AT_ALL_SERVERS(SETS_MARKER)
    AT_ALL_SERVERS(IS_PROMOTED)
    AT_ALL_SERVERS(STOPS)
    AT_ALL_SERVERS(BECOMES_REPLICA)
    AT_ALL_SERVERS(IS_REPLICATED_TO)
#if RESTARTS > 0
    AT_ALL_SERVERS(RESTARTS_OLD)
#endif
    FOR_ALL_LEASES(ENDS)
    od
}

/* In the beginning, the markers of all masters are valid. */
#define BEGINS(s)                                                                                                      \
    key[s] = NOBODY;                                                                                                   \
    NEW_IDENTITY(s);                                                                                                   \
    marker[s] = identity[node_of(s)]

init {
    d_step {
        masters = named;
#ifdef QUEUE
        pending[0] = named; /* earlier commands, of other requests */
        pending[LANES - 1] = named;
#endif
#if NODES == 1
        BEGINS(0); BEGINS(1)
#else
        BEGINS(0); BEGINS(1); BEGINS(2); BEGINS(3); BEGINS(4); BEGINS(5)
#endif
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
