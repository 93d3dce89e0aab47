// The addresses of the nodes, from a file and from the environment.
#include "tool/node_arguments.hpp"

#include "support/temporary_directory.hpp"
#include "tool/command_line.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace redlock::tool {
namespace {

/// Returns the nodes of a command with these options.
std::vector<Endpoint> endpoints(const std::vector<std::string>& options) {
    NodeArguments arguments;
    CommandLine line{"redlock", "locks", "1.0"};
    arguments.add_to(line.add("who", "asks", [] { return 0; }));
    std::vector<std::string> words{"who"};
    words.insert(words.end(), options.begin(), options.end());
    EXPECT_TRUE(line.parse(words));
    return arguments.endpoints();
}

TEST(NodesFile, HasNoCommentInsideOfAnAddress) {
    const support::TemporaryDirectory directory;
    const auto path = (directory / "nodes").string();
    std::ofstream{path} << "redis://127.0.0.1:1 # the first\n# redis://127.0.0.1:2\nredis://127.0.0.1:3#4\n";
    try {
        (void)endpoints({"--nodes-file", path});
        FAIL() << "the rest of an address was ignored";
    } catch (const std::invalid_argument& error) {
        EXPECT_THAT(error.what(), testing::StartsWith(path + ":3: "));
        EXPECT_THAT(error.what(), testing::HasSubstr("has a fragment ('#')"));
    }
}

/// Returns the message about options that name no nodes.
std::string error_of(const std::vector<std::string>& options) {
    try {
        (void)endpoints(options);
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
    return "no error";
}

TEST(NodesFile, MustNameANode) {
    const support::TemporaryDirectory directory;
    const auto path = (directory / "nodes").string();
    for (const auto* const text : {"", "\n \n", "# redis://127.0.0.1:2\n", "\xef\xbb\xbf"}) {
        std::ofstream{path} << text;
        EXPECT_EQ(error_of({"--nodes-file", path}), "--nodes-file: " + path + ": names no node") << text;
    }
}

// As in --nodes-file "$NODES" without this variable. Other nodes than those of the other clients would be
// asked.
TEST(NodesFile, MustNotHaveAnEmptyName) {
    ::setenv(nodes_variable, "127.0.0.1:1", 1);  // NOLINT(concurrency-mt-unsafe): one thread
    EXPECT_EQ(error_of({"--nodes-file", ""}), "--nodes-file: \"\" names no file");
    EXPECT_EQ(error_of({"--node", "127.0.0.1:2", "--nodes-file", ""}), "--nodes-file: \"\" names no file");
    ::unsetenv(nodes_variable);  // NOLINT(concurrency-mt-unsafe)
}

// Some editors begin every file with the bytes of U+FEFF.
TEST(NodesFile, MayBeginWithAByteOrderMark) {
    const support::TemporaryDirectory directory;
    const auto path = (directory / "nodes").string();
    for (const auto* const text : {"redis://127.0.0.1:1\n", "# the first\n127.0.0.1:1\n", "\n127.0.0.1:1"}) {
        std::ofstream{path} << "\xef\xbb\xbf" << text;
        const auto nodes = endpoints({"--nodes-file", path});
        ASSERT_EQ(nodes.size(), 1U) << text;
        EXPECT_EQ(nodes[0].port, 1);
        EXPECT_EQ(nodes[0].host, "127.0.0.1");
    }
}

TEST(NodesVariable, MayHaveCommasWithoutAnAddressBetweenThem) {
    ::setenv(nodes_variable, ",127.0.0.1:1,, 127.0.0.1:2 , ,",
             1);  // NOLINT(concurrency-mt-unsafe): one thread
    const auto nodes = endpoints({});
    ::unsetenv(nodes_variable);  // NOLINT(concurrency-mt-unsafe)
    ASSERT_EQ(nodes.size(), 2U);
    EXPECT_EQ(nodes[0].port, 1);
    EXPECT_EQ(nodes[1].port, 2);
}

}  // namespace
}  // namespace redlock::tool
