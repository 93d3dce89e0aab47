#include "fiber.hpp"

#include <redlock/detail/renewer.hpp>

#include <cxxabi.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

namespace redlock::sim {
namespace {

/// A pool of stacks. A schedule has a handful of fibers, but a run has millions, so the stacks are reused.
class Stacks : detail::NotCopied {
public:
    static constexpr std::size_t size = std::size_t{256} * 1024;

    Stacks() = default;
    ~Stacks() {
        for (void* const stack : free_) munmap(stack, size);
    }

    void* take() {
        if (!free_.empty()) {
            void* const stack = free_.back();
            free_.pop_back();
            return stack;
        }
        void* const stack =
            mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (stack == MAP_FAILED) throw std::bad_alloc{};
        mprotect(stack, 4096, PROT_NONE);  // a guard page, so that a stack overflow crashes
        return stack;
    }
    void give_back(void* stack) { free_.push_back(stack); }

private:
    std::vector<void*> free_{};
};

/// The state of caught and uncaught exceptions of a thread: two words in the C++ ABI of Linux.
class Exceptions {
public:
    /// Exchanges this state with that of the thread.
    void swap_with_the_thread() noexcept {
        auto before = words_;
        std::memcpy(before.data(), abi::__cxa_get_globals(), sizeof before);
        std::memcpy(abi::__cxa_get_globals(), words_.data(), sizeof words_);
        words_ = before;
    }

private:
    std::array<void*, 2> words_{};
};

thread_local Stacks stacks;
thread_local Fiber* running = nullptr;

}  // namespace

struct Fiber::Context {
    ucontext_t own;
    ucontext_t resumer;
    void* stack;
    Exceptions exceptions{};
    detail::RenewalContext renewal{};  // thread-local in production, so each fiber has its own
};

Fiber::Fiber(std::function<void()> body) : body_(std::move(body)), context_(std::make_unique<Context>()) {
    context_->stack = stacks.take();
    getcontext(&context_->own);
    context_->own.uc_stack.ss_sp = context_->stack;
    context_->own.uc_stack.ss_size = Stacks::size;
    context_->own.uc_link = nullptr;
    makecontext(&context_->own, &Fiber::enter, 0);
}

Fiber::~Fiber() {
    stacks.give_back(context_->stack);
}

void Fiber::resume() {
    running = this;
    context_->exceptions.swap_with_the_thread();
    std::swap(context_->renewal, detail::renewal_context());
    swapcontext(&context_->resumer, &context_->own);
    std::swap(context_->renewal, detail::renewal_context());
    context_->exceptions.swap_with_the_thread();
    running = nullptr;
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void Fiber::suspend() {
    auto& context = *running->context_;
    swapcontext(&context.own, &context.resumer);
}

void Fiber::enter() {
    running->run();
    suspend();
    std::abort();  // a fiber that is over is not resumed
}

void Fiber::run() {
    try {
        body_();
    } catch (...) {
        failure_ = std::current_exception();
    }
    body_ = nullptr;
    over_ = true;
}

}  // namespace redlock::sim
