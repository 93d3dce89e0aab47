/* Lanes: several sets of connections in one process. A lane has one connection to each node, and the former ones that
 * still drain. One thread at a time uses a lane. The model has two lanes to one node. The node is one server, or two
 * servers of which the Sentinels name one (SENTINELS).
 *
 * The property: no key is left for longer than needed. When everything has come to rest, every thread has ended, no
 * release waits to be sent, and the server that is named has no key of an owner that was released. There are three
 * exceptions:
 * - The reply to the SET was missing when its connection broke. The server may have received the SET, and may execute
 *   it after the release that was sent on another connection. Then the key stays until it expires.
 * - The thread that uses the lane of the SET never gets a processor again.
 * - The former master has answered the release, and when the release was written, no lane knew that the Sentinels name
 *   another server. That server was promoted without this release.
 *
 * failover.pml checks that no lease is counted on a vote of a former master. shared_reading.pml checks the threads of
 * which one leads. shared_connection.pml has what is the same if there is one lane.
 *
 * An owner is *bound* to a lane while its SET is unanswered there: from the moment at which its thread cannot take the
 * SET back any more until the reply is read, or until the connection breaks. These are the rules for the code:
 *
 * 1. One mutex guards the table of the lanes: who uses a lane, which owners are bound to it, and its debts (rule 3).
 *    The binding is exact. If a leading thread makes the rounds of a lane, a SET is bound when the leading thread takes
 *    it from the inbox, and not only when it is written.
 * 2. The release of a bound owner goes to its lane, and there on the connection of the SET, even if this connection
 *    drains. The release of another owner may go to any lane.
 * 3. If another thread uses the lane of a bound owner, the release waits for it. At its deadline it becomes a *debt* of
 *    the lane, which the user of the lane sends as in rule 2. By then, the SET may have been answered, or its
 *    connection may have broken.
 * 4. A thread gives a lane back in the same section under the mutex in which it finds that the lane has no debts.
 * 5. If a connection breaks, its owners are not bound any more. Its releases without a reply are kept, and any lane
 *    sends them again.
 * 6. A copy of a release may be sent on any lane at any time, because it deletes the key of one owner only. It never
 *    replaces the release behind the SET. It does not use the queue, because it could wake a second waiter.
 * 7. A lane that is not needed any more is closed when all its replies have been read, and not earlier.
 * 8. If a reply has been missing for too long, the connection drains and a new one is made, for which the Sentinels are
 *    asked. What they say holds for all lanes. Each lane compares it whenever it chooses a connection for a command,
 *    and not only when a round begins. A connection to a former master then counts as broken.
 * 9. The rounds that begin later read the replies on the lanes that nobody uses, and send the kept releases. In the
 *    model, this happens at any time.
 *
 * A SET may be sent on any idle lane, even if the release of an earlier owner is on its way on another lane. If it
 * overtakes this release, it is refused. Otherwise it has another owner, so a late release leaves its key alone.
 *
 * Messages are as in shared_connection.pml. The bytes of one connection are executed in order, and those of different
 * connections in any order. When a connection breaks, the server may have received any part of the bytes, and execute
 * that part later. What is written reaches the kernel at once. Keys do not expire. A deadline may pass at any moment.
 *
 * A replica copies the key of its master at any time until it is promoted. The former master goes on, or is frozen from
 * any moment after that. There is one promotion. The number of steps is bounded, and the graph of the states has no
 * cycle. */

#ifndef OWNERS
#define OWNERS 2 /* each has a thread */
#endif
#define LANES 2
#ifdef SENTINELS
#define PER_LANE 3 /* connections, one after another; the last one leads to the promoted server */
#define SERVERS 2  /* 0 is the master at the beginning */
#else
#define PER_LANE 2 /* the last one is neither given up nor broken */
#define SERVERS 1
#endif
#ifndef BREAKS
#define BREAKS 0 /* connections that break */
#endif
#ifndef REPEATS
#define REPEATS 0 /* releases that are sent again although no connection broke */
#endif
#define NOBODY 255
#define LEADER OWNERS
#define ROOM 8
#define bit(i) (1 << (i))

#define SET(a) (a)
#define RELEASE(a) ((a) + OWNERS)
#define GRANTED 16 /* is added to the number of a SET */
#define owner(message) ((message) % 16 % OWNERS)
#define is_release(message) ((message) % 16 >= OWNERS)
#define lane_of(c) ((c) / PER_LANE)
#define is_last(c) ((c) % PER_LANE == PER_LANE - 1)

/* For each connection: commands that are not executed, and commands whose replies are not read. */
chan to_server[LANES * PER_LANE] = [ROOM] of {byte};
chan to_client[LANES * PER_LANE] = [ROOM] of {byte};
bool broken[LANES * PER_LANE];
byte to[LANES * PER_LANE]; /* the server */

byte user[LANES];       /* the thread that uses the lane, LEADER or NOBODY */
byte current[LANES];    /* the connection for new commands */
byte debts[LANES];      /* owners */
byte bound_to[OWNERS];  /* a lane or NOBODY */
byte on[OWNERS];        /* the connection with the SET */

byte key[SERVERS];      /* the owner */
byte named;             /* the server that the Sentinels name */
byte known;             /* the server that they have named last to this process */
byte breaks, repeats;   /* so far */
byte started;           /* threads, so far */
bool frozen;            /* the former master executes nothing any more */
byte stuck = NOBODY;    /* the thread that never gets a processor again */

/* Sets of owners. */
byte in_round;          /* the round of the SET is under way */
byte granted, refused;  /* in time */
byte kept;              /* releases to send again */
byte unknown[SERVERS];  /* the SET was pending on a connection to this server that broke */
byte must_release;      /* a release is due */
byte knew;              /* when the release was written, the process knew that the other server is named */
byte late_answer;       /* the former master has answered the release */
byte ended;             /* threads */
/* SETs for the leading thread: new; taken from the inbox; those of them that their threads have left; to be written. */
byte inbox, taken, left, begun;

#ifdef RELEASE_TAKES_ANY_LANE
#define may_take(a, l) true
#else
#define may_take(a, l) (bound_to[a] == (l) || bound_to[a] == NOBODY)
#endif
#ifdef WITNESS /* false on purpose: a release overtakes its SET if the connection breaks */
#define UNKNOWN(c, a) skip
#else
#define UNKNOWN(c, a) unknown[to[c]] = unknown[to[c]] | bit(a)
#endif
#ifdef DEBT_WITNESS /* false on purpose: a debt is sent behind its SET, on a connection that drains */
#define HAS_DEBT(a, l) assert(bound_to[a] != (l) || on[a] == current[l])
#else
#define HAS_DEBT(a, l) skip
#endif
#ifdef REFUSED_WITNESS /* false on purpose: a later SET of this process is refused because of a release on its way */
#define IS_REFUSED(s) assert(!(must_release & bit(key[s])))
#else
#define IS_REFUSED(s) skip
#endif
#ifdef RELEASE_ON_CURRENT
#define follows(a, l) false
#else
#define follows(a, l) (bound_to[a] == (l))
#endif
#define is_stuck(l) (user[l] != NOBODY && user[l] == stuck)
#define has(c, command) (to_server[c] ?? [eval(command)] || to_client[c] ?? [eval(command)])
#define may_begin_next(l) (!is_last(current[l]) && (SERVERS == 1 || named == 1 || !is_last(current[l] + 1)))
#define begin_next(l)                                                                                                  \
    current[l]++;                                                                                                      \
    to[current[l]] = named;                                                                                            \
    known = named

/* Rule 5. */
#define LOSE_ORDER(c, a)                                                                                               \
    if                                                                                                                 \
    :: bound_to[a] == lane_of(c) && on[a] == (c) ->                                                                    \
        bound_to[a] = NOBODY;                                                                                          \
        on[a] = NOBODY;                                                                                                \
        UNKNOWN(c, a)                                                                                                  \
    :: else                                                                                                            \
    fi;                                                                                                                \
    if                                                                                                                 \
    :: has(c, RELEASE(a)) -> kept = kept | bit(a)                                                                      \
    :: else                                                                                                            \
    fi
#define break_connection(c)                                                                                            \
    broken[c] = true;                                                                                                  \
    if                                                                                                                 \
    :: current[lane_of(c)] == (c) -> begin_next(lane_of(c))                                                            \
    :: else                                                                                                            \
    fi;                                                                                                                \
    FOR_OWNERS_TOO(LOSE_ORDER, c);                                                                                     \
    do                                                                                                                 \
    :: nempty(to_client[c]) -> to_client[c] ? _                                                                        \
    :: empty(to_client[c]) -> break                                                                                    \
    od;                                                                                                                \
    skip
#if OWNERS == 1
#define FOR_OWNERS(event, x) event(x, 0)
#define FOR_OWNERS_TOO(event, x) event(x, 0)
#elif OWNERS == 2
#define FOR_OWNERS(event, x) event(x, 0); event(x, 1)
#define FOR_OWNERS_TOO(event, x) event(x, 0); event(x, 1) /* a macro cannot be used in itself */
#else
#define FOR_OWNERS(event, x) event(x, 0); event(x, 1); event(x, 2)
#define FOR_OWNERS_TOO(event, x) event(x, 0); event(x, 1); event(x, 2)
#endif

/* Rule 8. The last connection of a lane never leads to a former master. */
#define drop_if_former(c)                                                                                              \
    if                                                                                                                 \
    :: !broken[c] && (c) <= current[lane_of(c)] && to[c] != known ->                                                   \
        printf("    connection %d leads to the former master\n", c);                                                   \
        break_connection(c)                                                                                            \
    :: else                                                                                                            \
    fi
#if !defined(SENTINELS) || defined(COMPARES_NEVER)
#define compare_names(l) skip
#else
#define compare_names(l)                                                                                               \
    drop_if_former((l) * PER_LANE);                                                                                    \
    drop_if_former((l) * PER_LANE + 1)
#endif
#ifdef COMPARES_EARLIER
#define COMPARE_FIRST(l) compare_names(l)
#define COMPARE(l) skip
#else
#define COMPARE_FIRST(l) skip
#define COMPARE(l) compare_names(l)
#endif

#define write_set(a, l)                                                                                                \
    COMPARE(l);                                                                                                        \
    printf("thread %d writes its SET on connection %d\n", a, current[l]);                                              \
    on[a] = current[l];                                                                                                \
    bound_to[a] = l;                                                                                                   \
    to_server[on[a]] ! SET(a)
#define write_release(a, l, c)                                                                                         \
    printf("    the release of owner %d is written on connection %d\n", a, c);                                         \
    knew = knew | (bit(a) * known);                                                                                    \
    to_server[c] ! RELEASE(a)
#define send_release(a, l)                                                                                             \
    must_release = must_release | bit(a);                                                                              \
    COMPARE(l);                                                                                                        \
    if                                                                                                                 \
    :: follows(a, l) -> write_release(a, l, on[a])                                                                     \
    :: else -> write_release(a, l, current[l])                                                                         \
    fi
#define SEND_DEBT(l, a)                                                                                                \
    if                                                                                                                 \
    :: debts[l] & bit(a) ->                                                                                            \
        HAS_DEBT(a, l);                                                                                                \
        send_release(a, l)                                                                                             \
    :: else                                                                                                            \
    fi
#define send_debts(l)                                                                                                  \
    FOR_OWNERS(SEND_DEBT, l);                                                                                          \
    debts[l] = 0
#define leave_debt(a, l)                                                                                               \
    printf("thread %d leaves a debt on lane %d\n", a, l);                                                              \
    must_release = must_release | bit(a);                                                                              \
    debts[l] = debts[l] | bit(a)

#ifdef ALSO_AT_ONCE
#define LEAVES_DEBT(a, l)                                                                                              \
    d_step { may_take(a, l) && user[l] != NOBODY -> leave_debt(a, l) }                                                 \
    if                                                                                                                 \
    :: TAKES(a, 1 - l)                                                                                                 \
    :: goto done                                                                                                       \
    fi
#else
#define LEAVES_DEBT(a, l)                                                                                              \
    d_step { may_take(a, l) && user[l] != NOBODY -> leave_debt(a, l) }                                                 \
    goto done
#endif

#define TAKES_IF(a, l, condition, starts)                                                                              \
    d_step {                                                                                                           \
        user[l] == NOBODY && (condition) ->                                                                            \
        printf("thread %d takes lane %d\n", a, l);                                                                     \
        COMPARE_FIRST(l);                                                                                              \
        started = started + (starts);                                                                                  \
        user[l] = a;                                                                                                   \
        lane = l                                                                                                       \
    }
#define TAKES(a, l) TAKES_IF(a, l, true, 0)

/* Rule 4. */
#ifdef FORGETS_NEW_DEBTS
#define GIVES_BACK                                                                                                     \
    d_step { send_debts(lane) }                                                                                        \
    user[lane] = NOBODY
#else
#define GIVES_BACK                                                                                                     \
    d_step {                                                                                                           \
        send_debts(lane);                                                                                              \
        user[lane] = NOBODY                                                                                            \
    }
#endif

#define HAS_NO_REPLY(a) (!((granted | refused) & bit(a)))
#define ends_round(a) in_round = in_round & ~bit(a)
#ifdef BOUND_WHEN_WRITTEN
#define BIND_TAKEN(l, a) skip
#else
#define BIND_TAKEN(l, a)                                                                                               \
    if                                                                                                                 \
    :: taken & bit(a) -> bound_to[a] = l                                                                               \
    :: else                                                                                                            \
    fi
#endif
#define END_LEFT(l, a)                                                                                                 \
    if                                                                                                                 \
    :: left & bit(a) -> bound_to[a] = NOBODY                                                                           \
    :: else                                                                                                            \
    fi
#define BEGIN_TAKEN(l, a)                                                                                              \
    if                                                                                                                 \
    :: begun & bit(a) -> write_set(a, l)                                                                               \
    :: else                                                                                                            \
    fi

proctype Thread(byte a) provided (stuck + 2 != _pid) {
    byte lane;
    if /* The round of the SET. The threads begin in the order of their numbers, because they are interchangeable. The
        * same holds for the lanes, unless one has a leader. */
    :: TAKES_IF(a, 0, started == a, 1)
    :: TAKES_IF(a, 1, started == a && (a > 0 || user[0] == LEADER), 1)
    :: d_step {
        user[0] == LEADER && started == a ->
        printf("thread %d puts its SET into the inbox\n", a);
        started++;
        inbox = inbox | bit(a);
        in_round = in_round | bit(a)
    }
        goto awaits
    fi;
    d_step {
        in_round = in_round | bit(a);
        write_set(a, lane)
    }
awaits:
    if
    :: d_step { !HAS_NO_REPLY(a) -> ends_round(a) }
    :: d_step { /* The deadline, or the other nodes are a quorum. */
        HAS_NO_REPLY(a) && !((inbox | taken | begun) & bit(a)) ->
        printf("thread %d ends its round\n", a);
        ends_round(a)
    }
    :: d_step {
        HAS_NO_REPLY(a) && !((inbox | taken | begun) & bit(a)) && bound_to[a] == lane && on[a] == current[lane] &&
            may_begin_next(lane) ->
        printf("thread %d gives the node up, and connection %d drains\n", a, on[a]);
        begin_next(lane);
        ends_round(a)
    }
    :: d_step {
        (taken | begun) & bit(a) ->
        printf("thread %d leaves its round\n", a);
        left = left | (taken & bit(a));
        ends_round(a)
    }
    :: d_step { /* Nothing was sent. */
        inbox & bit(a) ->
        inbox = inbox & ~bit(a);
        ends_round(a)
    }
        goto done
    fi;
    if
    :: user[lane] == a -> GIVES_BACK
    :: else
    fi;
    if
    :: d_step {
        refused & bit(a) ->
        refused = refused & ~bit(a);
        lane = 0
    }
        goto done
    :: d_step {
        !(refused & bit(a)) ->
        granted = granted & ~bit(a);
        lane = 0
    }
    fi;
    if /* The round of the release. It need not wait for its reply. Rules 2 and 3. */
    :: TAKES_IF(a, 0, may_take(a, 0), 0)
    :: TAKES_IF(a, 1, may_take(a, 1), 0)
#ifdef DEBT_ON_ANOTHER_LANE
    :: TAKES_IF(a, 0, bound_to[a] == 1 && user[1] != NOBODY, 0)
    :: TAKES_IF(a, 1, bound_to[a] == 0 && user[0] != NOBODY, 0)
#elif !defined(WAITS_FOR_EVER)
    :: LEAVES_DEBT(a, 0)
    :: LEAVES_DEBT(a, 1)
#endif
    fi;
    d_step { send_release(a, lane) }
    GIVES_BACK;
    lane = 0;
done:
    ended = ended | bit(a)
}

/* The leading thread makes the rounds of lane 0. */
proctype Leader() provided (stuck + 2 != _pid) {
end:
    do
    :: d_step {
        inbox != 0 && (taken | begun) == 0 ->
        printf("    the leader takes the inbox\n");
        taken = inbox;
        inbox = 0;
        FOR_OWNERS(BIND_TAKEN, 0)
    }
    :: d_step { /* First, the leading thread ends the rounds that were left. */
        taken != 0 ->
        FOR_OWNERS(END_LEFT, 0);
        begun = taken & ~left;
        taken = 0;
        left = 0
    }
    :: d_step {
        begun != 0 ->
        FOR_OWNERS(BEGIN_TAKEN, 0);
        begun = 0
    }
    :: d_step { (taken | begun) == 0 && debts[0] != 0 -> send_debts(0) }
    od
}

#define READS(c)                                                                                                       \
    :: d_step {                                                                                                        \
        !broken[c] && nempty(to_client[c]) && !is_stuck(lane_of(c)) ->                                                 \
        to_client[c] ? message;                                                                                        \
        printf("    connection %d: a reply to message %d\n", c, message);                                              \
        if                                                                                                             \
        :: is_release(message) && to[c] + 1 < SERVERS -> late_answer = late_answer | bit(owner(message))               \
        :: is_release(message) && to[c] + 1 == SERVERS                                                                 \
        :: !is_release(message) ->                                                                                     \
            bound_to[owner(message)] = NOBODY;                                                                         \
            on[owner(message)] = NOBODY;                                                                               \
            if                                                                                                         \
            :: !(in_round & bit(owner(message)))                                                                       \
            :: (in_round & bit(owner(message))) && message >= GRANTED -> granted = granted | bit(owner(message))       \
            :: (in_round & bit(owner(message))) && message < GRANTED -> refused = refused | bit(owner(message))        \
            fi                                                                                                         \
        fi;                                                                                                            \
        message = 0                                                                                                    \
    }
#define EXECUTES(c)                                                                                                    \
    :: d_step {                                                                                                        \
        nempty(to_server[c]) && !(frozen && to[c] == 0) ->                                                             \
        to_server[c] ? message;                                                                                        \
        printf("        server %d executes message %d\n", to[c], message);                                             \
        if                                                                                                             \
        :: !is_release(message) && key[to[c]] == NOBODY ->                                                             \
            key[to[c]] = message;                                                                                      \
            message = message + GRANTED                                                                                \
        :: !is_release(message) && key[to[c]] != NOBODY -> IS_REFUSED(to[c])                                           \
        :: is_release(message) && key[to[c]] == owner(message) -> key[to[c]] = NOBODY                                  \
        :: else                                                                                                        \
        fi;                                                                                                            \
        if                                                                                                             \
        :: !broken[c] -> to_client[c] ! message                                                                        \
        :: else                                                                                                        \
        fi;                                                                                                            \
        message = 0                                                                                                    \
    }                                                                                                                  \
    :: d_step { /* The rest of the bytes never arrives. */                                                             \
        broken[c] && nempty(to_server[c]) ->                                                                           \
        do                                                                                                             \
        :: nempty(to_server[c]) -> to_server[c] ? _                                                                    \
        :: empty(to_server[c]) -> break                                                                                \
        od;                                                                                                            \
        skip                                                                                                           \
    }
#define is_pending(c) (nempty(to_server[c]) || nempty(to_client[c]))
#define BREAKS_OFF(c)                                                                                                  \
    :: d_step {                                                                                                        \
        breaks < BREAKS && !is_last(c) && c <= current[lane_of(c)] && !broken[c] && is_pending(c) &&                   \
            !is_stuck(lane_of(c)) && (c < current[lane_of(c)] || may_begin_next(lane_of(c))) ->                        \
        printf("    connection %d BREAKS\n", c);                                                                       \
        breaks++;                                                                                                      \
        break_connection(c)                                                                                            \
    }
#define SENDS_KEPT(l)                                                                                                  \
    :: d_step {                                                                                                        \
        kept != 0 && !is_stuck(l) ->                                                                                   \
        COMPARE(l);                                                                                                    \
        FOR_OWNERS(SEND_ONE_KEPT, l);                                                                                  \
        kept = 0                                                                                                       \
    }
#define SEND_ONE_KEPT(l, a)                                                                                            \
    if                                                                                                                 \
    :: kept & bit(a) -> write_release(a, l, current[l])                                                                \
    :: else                                                                                                            \
    fi
#define SENDS_AGAIN(c, a)                                                                                              \
    :: d_step {                                                                                                        \
        repeats < REPEATS && has(c, RELEASE(a)) && !broken[c] && !is_stuck(lane_of(c)) ->                              \
        printf("    the release of owner %d is sent again\n", a);                                                      \
        repeats++;                                                                                                     \
        kept = kept | bit(a)                                                                                           \
    }
#define leads_to_former(c) (!broken[c] && c <= current[lane_of(c)] && to[c] != known)
#define COMPARES(l)                                                                                                    \
    :: d_step {                                                                                                        \
        user[l] == NOBODY && (leads_to_former(l * PER_LANE) || leads_to_former(l * PER_LANE + 1)) ->                   \
        compare_names(l)                                                                                               \
    }
#ifdef IGNORES_SILENCE
#define IS_SILENT(l)
#else
#define IS_SILENT(l)                                                                                                   \
    :: d_step {                                                                                                        \
        !is_stuck(l) && is_pending(current[l]) && may_begin_next(l) ->                                                 \
        printf("    connection %d has not answered in time\n", current[l]);                                            \
        begin_next(l)                                                                                                  \
    }
#endif
#define IS_OUTDATED(l)                                                                                                 \
    :: d_step {                                                                                                        \
        !is_stuck(l) && empty(to_server[current[l]]) && empty(to_client[current[l]]) && to[current[l]] != named &&     \
            may_begin_next(l) ->                                                                                       \
        printf("    connection %d was idle for too long\n", current[l]);                                               \
        begin_next(l)                                                                                                  \
    }
#define GETS_STUCK(l)                                                                                                  \
    :: d_step {                                                                                                        \
        stuck == NOBODY && user[l] != NOBODY ->                                                                        \
        printf("        the thread of lane %d gets no processor any more\n", l);                                       \
        stuck = user[l]                                                                                                \
    }

#define UNBIND(l, a)                                                                                                   \
    if                                                                                                                 \
    :: bound_to[a] == (l) -> bound_to[a] = NOBODY; on[a] = NOBODY                                                      \
    :: else                                                                                                            \
    fi

proctype World() {
    byte message;
end:
    do
#ifdef SENTINELS
    READS(0) READS(1) READS(2) READS(3) READS(4) READS(5)
    EXECUTES(0) EXECUTES(1) EXECUTES(2) EXECUTES(3) EXECUTES(4) EXECUTES(5)
    BREAKS_OFF(0) BREAKS_OFF(1) BREAKS_OFF(3) BREAKS_OFF(4)
    :: d_step {
        named == 0 && key[1] != key[0] ->
        printf("        server 1 takes over the data of server 0\n");
        key[1] = key[0]
    }
    :: d_step {
        named == 0 ->
        printf("server 1 IS PROMOTED\n");
        named = 1
    }
    :: d_step {
        named == 1 && !frozen ->
        printf("        server 0 is frozen\n");
        frozen = true
    }
    IS_SILENT(0) IS_SILENT(1)
    IS_OUTDATED(0)
#ifndef IGNORES_SILENCE /* otherwise nobody uses the other lane */
    IS_OUTDATED(1)
#endif
#ifndef COMPARES_NEVER
    COMPARES(0) COMPARES(1)
#endif
#else
    READS(0) READS(1) READS(2) READS(3)
    EXECUTES(0) EXECUTES(1) EXECUTES(2) EXECUTES(3)
    BREAKS_OFF(0) BREAKS_OFF(2)
#endif
    SENDS_KEPT(0) SENDS_KEPT(1)
#if REPEATS > 0
    SENDS_AGAIN(0, 0) SENDS_AGAIN(PER_LANE, 0)
#if OWNERS > 1
    SENDS_AGAIN(0, 1) SENDS_AGAIN(PER_LANE, 1)
#endif
#endif
#ifdef CLOSES_LANE
    :: d_step {
        user[1] == NOBODY && current[1] == PER_LANE && is_pending(PER_LANE) ->
        printf("    lane 1 is closed\n");
        FOR_OWNERS(UNBIND, 1);
        break_connection(PER_LANE)
    }
#endif
#ifdef STARVES
    GETS_STUCK(0) GETS_STUCK(1)
#endif
    od
}

#define is_stuck_debt(a) ((is_stuck(0) && (debts[0] & bit(a))) || (is_stuck(1) && (debts[1] & bit(a))))
#ifdef PROMOTION_WITNESS /* false on purpose: a replica was promoted without a release */
#define is_excused(a) ((unknown[named] & bit(a)) || is_stuck_debt(a))
#else
#define is_excused(a) ((unknown[named] & bit(a)) || (late_answer & ~knew & bit(a)) || is_stuck_debt(a))
#endif
#define has_ended(a) ((ended & bit(a)) || stuck == (a))
#define is_gone(a) (key[named] != (a) || !(must_release & bit(a)) || is_excused(a))
#if OWNERS == 1
#define all(what) what(0)
#elif OWNERS == 2
#define all(what) (what(0) && what(1))
#else
#define all(what) (what(0) && what(1) && what(2))
#endif

init {
    byte i;
    atomic {
        for (i : 0 .. OWNERS - 1) {
            bound_to[i] = NOBODY;
            on[i] = NOBODY
        }
        for (i : 0 .. SERVERS - 1) { key[i] = NOBODY }
        for (i : 0 .. LANES - 1) {
            user[i] = NOBODY;
            current[i] = i * PER_LANE
        }
        run World(); /* has the process number 1, and thread a has a + 2 */
        for (i : 0 .. OWNERS - 1) { run Thread(i) }
#ifdef LEADS
        user[0] = LEADER;
        run Leader();
#endif
        i = 0
    }
    timeout -> /* Nothing can happen any more. */
    assert(all(has_ended));
    assert(kept == 0 && (debts[0] == 0 || is_stuck(0)) && (debts[1] == 0 || is_stuck(1)));
    assert(all(is_gone))
}
