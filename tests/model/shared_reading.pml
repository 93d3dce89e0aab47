/* Threads that share a connection: one of them reads for all.
 *
 * The property: every request ends. It ends when its reply was received, and also when its deadline has passed or its
 * stop token was used, even if the server is silent from some time on. Also, each release is written in the end, even
 * if no thread waits any more. Each thread makes one request; the state is guarded by one mutex, and each step below
 * is one section under that mutex. These are the rules for the code:
 *
 * 1. A thread puts its command into the buffer. If no reply is pending, it writes the buffer in the same section.
 * 2. If there is no reader, it becomes the reader in the same section. Otherwise it waits for its own semaphore.
 * 3. If the reader does not know the deadline of a new request, the new thread wakes the reader. So does a thread that
 *    collects a command, because the reader has to write it after a bounded time.
 * 4. The reader empties its wake-up first. Then it computes what to wait for, from all requests. Then it polls without
 *    the mutex. A wake-up that comes after the first step ends the poll.
 * 5. When it has delivered the last pending reply, it writes the buffer in the same section.
 * 6. A thread that was decided, or is stopped, or is past its deadline, leaves. If it is the reader, it first names a
 *    successor among the threads that wait, and posts the semaphore of this thread. It does this in the same section,
 *    so there is never a waiting thread without a reader. If nobody waits, there is no reader any more.
 * 7. A thread can be named as the reader and be decided or stopped before it wakes. When it leaves, it still is the
 *    reader, and rule 6 holds for it. So it asks who the reader is after each wake-up, and before it returns.
 * 8. A reader without a successor writes the buffer, even behind pending replies. Otherwise the release of a request
 *    that has left would stay in the buffer.
 * 9. A stop token wakes its own thread: by the semaphore if it waits, by the reader's wake-up if it reads. The
 *    callback looks up which under the mutex. The token may have been used before the thread waits, so the thread
 *    checks it in the section in which it begins to wait. The callback must not be registered under the mutex,
 *    because a token that was used already runs it at once.
 *
 * Deadlines are handled by the reader: it ends requests whose deadlines have passed and posts their semaphores. A
 * write to the socket never blocks, and is complete in the model. Only thread 1 may have a deadline. With
 * three threads, only thread 0 may be stopped.
 *
 * The server may be silent from any moment. As in shared_connection.pml, the graph of the states has no cycle, so
 * "every request ends" means that each state in which nothing can happen any more is as it should be. A search for
 * cycles shows this. Weak fairness needs nothing beyond that: every process goes on until it cannot. */

#ifndef THREADS
#define THREADS 3
#endif
#define NOBODY 255
#define bit(i) (1 << (i))
#define ALL (bit(THREADS) - 1)

/* Sets of threads. */
byte buffer;    /* commands that are collected */
byte releases;  /* the same for the releases of requests that left without a reply */
byte pending;   /* commands that are written, and whose replies have not been read */
byte replies;   /* replies that have arrived and are not read */
byte decided;   /* requests whose replies were delivered */
byte expired;   /* requests that the reader has ended at their deadlines */
byte stopped;   /* requests whose stop tokens were used */
byte due;       /* requests whose deadlines have passed */
byte known;     /* requests that the reader knew when it began its poll */
byte waiting;   /* threads that wait for their semaphores, or are about to do so */
byte posted;    /* semaphores */
byte ended;     /* requests */

byte reader = NOBODY;
bool woken;      /* the reader's wake-up */
bool polling;    /* the reader has computed what to wait for */
bool flush_due;  /* commands were collected for too long */
bool flush_known; /* the reader knew that commands are collected */
bool silent;     /* the server has stopped to reply */

/* The server cannot reply to a release in the model, because nobody waits for it. */
#define writes_all                                                                                                     \
    pending = pending | buffer;                                                                                        \
    buffer = 0;                                                                                                        \
    releases = 0;                                                                                                      \
    flush_due = false
#define is_finished(t) ((decided | expired | stopped) & bit(t))
#define WAKE_READER woken = true
#ifdef NEW_REQUEST_DOES_NOT_WAKE
#define WAKE_FOR_NEW skip
#else
#define WAKE_FOR_NEW WAKE_READER
#endif
#ifdef STOP_DOES_NOT_WAKE
#define WAKE_FOR_STOP skip
#else
#define WAKE_FOR_STOP WAKE_READER
#endif

#ifdef EARLY_STOP_IS_MISSED
#define POST_IF_STOPPED(t) skip
#else
#define POST_IF_STOPPED(t) posted = posted | (stopped & bit(t))
#endif

/* Names a waiting thread, if there is one. */
#define name_successor                                                                                                 \
    reader = NOBODY;                                                                                                   \
    polling = false;                                                                                                   \
    if                                                                                                                 \
    :: SUCCESSORS & bit(0) -> reader = 0; posted = posted | bit(0)                                                     \
    :: !(SUCCESSORS & bit(0)) && (SUCCESSORS & bit(1)) -> reader = 1; posted = posted | bit(1)                         \
    :: !(SUCCESSORS & (bit(0) | bit(1))) && (SUCCESSORS & bit(2)) -> reader = 2; posted = posted | bit(2)              \
    :: else -> WRITE_AT_LEAVING                                                                                        \
    fi
#ifdef NO_SUCCESSOR
#define SUCCESSORS 0
#else
#define SUCCESSORS waiting
#endif
#ifdef LEAVES_THE_BUFFER
#define WRITE_AT_LEAVING skip
#else
#define WRITE_AT_LEAVING writes_all
#endif

#ifdef EMPTIES_LAST
#define EMPTY_FIRST skip
#define POLLS_AT_ONCE false
#define EMPTY_LAST                                                                                                     \
    d_step {                                                                                                           \
        woken = false;                                                                                                 \
        polling = true                                                                                                 \
    }
#else
#define EMPTY_FIRST woken = false
#define POLLS_AT_ONCE true
#define EMPTY_LAST
#endif
#define ALL_KNOWN (waiting | bit(t))
#ifdef NOBODY_WRITES
#define WRITES_NOW false
#define KNOWS_FLUSH false
#else
#define KNOWS_FLUSH (flush_known && flush_due)
#define WRITES_NOW (pending == 0 || flush_due)
#endif
#ifdef FORGETS_THAT_IT_WAS_NAMED
#define HANDS_ON !was_waiting
#else
#define HANDS_ON true
#endif

proctype Thread(byte t) {
    bool was_waiting;
    d_step { /* Rules 1 to 3. */
        printf("thread %d begins\n", t);
        buffer = buffer | bit(t);
        if
        :: pending == 0 -> writes_all
        :: else
        fi;
        if
        :: reader == NOBODY -> reader = t
        :: else ->
            waiting = waiting | bit(t);
            POST_IF_STOPPED(t);
            WAKE_FOR_NEW
        fi
    }
    do
    :: d_step { /* Rules 6 to 8. */
        is_finished(t) && (reader != t || !polling) && (!(waiting & bit(t)) || (posted & bit(t))) ->
        printf("thread %d leaves\n", t);
        was_waiting = (waiting & bit(t)) != 0;
        waiting = waiting & ~bit(t);
        posted = posted & ~bit(t);
        ended = ended | bit(t);
        if
        :: !(decided & bit(t)) -> /* Its SET is in the buffer or pending. Its release goes behind the SET. */
            releases = releases | bit(t)
        :: else
        fi;
        if
        :: pending == 0 && releases != 0 -> writes_all
        :: pending != 0 && releases != 0 && reader != NOBODY && reader != t -> WAKE_FOR_NEW
        :: else
        fi;
        if
        :: reader == t && HANDS_ON -> name_successor
        :: else
        fi;
        was_waiting = false
    }
        break
    :: d_step { /* It was named as the reader. */
        !is_finished(t) && (waiting & bit(t)) && (posted & bit(t)) ->
        posted = posted & ~bit(t);
        if
        :: reader == t ->
            printf("thread %d goes on reading\n", t);
            waiting = waiting & ~bit(t)
        :: else
        fi
    }
    :: d_step { /* Rule 4. */
        !is_finished(t) && reader == t && !polling && !(waiting & bit(t)) ->
        EMPTY_FIRST;
        known = ALL_KNOWN;
        flush_known = (buffer | releases) != 0;
        polling = POLLS_AT_ONCE
    }
        EMPTY_LAST
    :: d_step { /* The poll ends. Rule 5. */
        reader == t && polling && (woken || replies != 0 || (known & due & ~(expired | decided)) || KNOWS_FLUSH) ->
        polling = false;
        decided = decided | (replies & ~ended & ~expired);
        posted = posted | (replies & waiting);
        pending = pending & ~replies;
        replies = 0;
        expired = expired | (due & (waiting | bit(t)) & ~decided);
        posted = posted | (expired & waiting);
        if
        :: WRITES_NOW -> writes_all
        :: else
        fi
    }
    od
}
proctype Server() {
end:
    do
    :: !silent && (pending & ~replies & bit(0)) -> replies = replies | bit(0)
    :: !silent && (pending & ~replies & bit(1)) -> replies = replies | bit(1)
    :: !silent && (pending & ~replies & bit(2)) -> replies = replies | bit(2)
    :: !silent -> silent = true
    od
}

/* The deadline of a request passes, or never does. */
proctype Deadline(byte t) {
    if
    :: d_step {
        true ->
        printf("        the deadline of thread %d passes\n", t);
        due = due | bit(t)
    }
    :: true
    fi
}

/* Rule 9. */
proctype Stop(byte t) {
    if
    :: d_step {
        true ->
        printf("        thread %d is stopped\n", t);
        stopped = stopped | bit(t);
        if
        :: reader == t -> WAKE_FOR_STOP
        :: reader != t && (waiting & bit(t)) -> posted = posted | bit(t)
        :: else
        fi
    }
    :: true
    fi
}

/* The bounded time after which collected commands are written in any case. */
proctype FlushTimer() {
end:
    do
    :: d_step {
        (buffer | releases) != 0 && !flush_due ->
        printf("        commands have been collected for too long\n");
        flush_due = true
    }
    od
}

#define has_reason (due | stopped | replies | decided)
#define may_last(t) ((ended & bit(t)) || (silent && !(has_reason & bit(t))))
#define is_written ((buffer | releases) == 0)
#if THREADS == 3
#define at_rest (may_last(0) && may_last(1) && may_last(2) && is_written)
#else
#define at_rest (may_last(0) && may_last(1) && is_written)
#endif

init {
    atomic {
        run Server();
        run FlushTimer();
        run Deadline(1);
        run Stop(0);
        run Thread(0);
        run Thread(1);
#if THREADS == 3
        run Thread(2)
#else
        run Stop(1)
#endif
    }
    timeout -> /* Nothing can happen any more. */
    assert(at_rest)
}
