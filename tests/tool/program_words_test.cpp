// Where our options end and the program of `redlock run` begins, as for flock, env and sudo.
#include "arguments/command_line.hpp"

#include <gmock/gmock.h>

#include <sstream>
#include <string>
#include <vector>

namespace redlock::tool::program_words_test {
namespace {

using Words = std::vector<std::string>;

Words words(const std::string& line) {
    std::istringstream in{line};
    return {std::istream_iterator<std::string>{in}, {}};
}

struct Case {
    std::string line;
    std::string ours;
    std::string program;
};

class ProgramWords : public testing::TestWithParam<Case> {};

TEST_P(ProgramWords, BeginAfterTheResource) {
    CLI::App app;
    bool flag = false;
    std::string value;
    std::string resource;
    app.add_flag("-n,--nonblock,-v", flag);
    app.add_option("-w,--wait,-c", value);
    app.add_option("RESOURCE", resource)->required();
    auto ours = words("run " + GetParam().line);
    EXPECT_EQ(take_program(app, ours), words(GetParam().program));
    EXPECT_EQ(ours, words("run " + GetParam().ours));
}

INSTANTIATE_TEST_SUITE_P(
    Lines, ProgramWords,
    testing::Values(Case{"job make", "job", "make"}, Case{"job -- make -n", "job", "make -n"},
                    Case{"-n job make -n --wait", "-n job", "make -n --wait"},
                    Case{"-w 5 job make", "-w 5 job", "make"}, Case{"-w5 job make", "-w5 job", "make"},
                    Case{"-nw 5 job make", "-nw 5 job", "make"}, Case{"-nv job make", "-nv job", "make"},
                    Case{"--wait 5 job make", "--wait 5 job", "make"},
                    Case{"--wait=5 job make", "--wait=5 job", "make"},
                    Case{"job -c string", "job -c string", ""}, Case{"job -cstring", "job -cstring", ""},
                    Case{"job --command=string", "job --command=string", ""},
                    Case{"job -n make", "job", "-n make"}, Case{"job -w 5 make", "job", "-w 5 make"},
                    Case{"-- -job make", "-- -job", "make"}, Case{"-- job -- make", "-- job", "make"},
                    Case{"job -- -- make", "job", "-- make"}, Case{"job", "job", ""},
                    Case{"job --", "job", ""}, Case{"-n", "-n", ""}, Case{"", "", ""}, Case{"-w", "-w", ""},
                    Case{"job -w", "job", "-w"}, Case{"job -c", "job -c", ""}, Case{"--", "--", ""},
                    Case{"--unknown job make", "--unknown job", "make"}));

}  // namespace
}  // namespace redlock::tool::program_words_test
