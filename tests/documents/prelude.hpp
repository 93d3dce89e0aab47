// Names that blocks of code in documents use without declaring them, because they are self-explanatory in a
// text. This header includes nothing but the library, so that a block does not compile if its document names
// too few headers.
#pragma once

#include <redlock/redlock.hpp>

namespace documents {

using namespace std::chrono_literals;

extern redlock::RedisNodes nodes;
extern redlock::Lock lock;

struct Order {};
extern Order order;
extern std::stop_token stop;
void charge(const Order&);
void deliver(const Order&);
void charge_the_order();
void export_the_orders();
void log(const std::string&);
void busy();
void print_the_report(const std::stop_token&);
bool write_a_page();
void bill_the_next(std::uint64_t fencing_token);

struct Store {
    std::string read(const Order&, std::uint64_t fencing_token);
    void write(const Order&, std::uint64_t fencing_token);
    void write(const Order&, const std::string& text, std::uint64_t fencing_token);
};
extern Store store;

struct Histogram {
    void observe(std::chrono::nanoseconds);
};
struct Rounds {
    Histogram& operator[](redlock::Verb);
};
extern Rounds rounds;

}  // namespace documents
