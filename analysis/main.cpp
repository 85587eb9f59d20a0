// The `gradwire` program: everything it does is in cli.h.
#include <fcntl.h>
#include <malloc.h>
#include <unistd.h>

#include <iostream>

#include "analysis/cli.h"
#include "analysis/output_file.h"

namespace {

// A standard stream that the caller closed must not become some file that we open: input and
// errors go to /dev/null, and output fails when written to.
void open_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(stream, F_GETFD) < 0)
      static_cast<void>(open("/dev/null", stream == STDERR_FILENO ? O_WRONLY : O_RDONLY));
}

}  // namespace

int main(int argc, char** argv) {
  open_standard_streams();
  mallopt(M_ARENA_MAX, 1);  // the threads of all workers share freed pages; few run at a time
  gradwire::exit_on_interrupt();
  return gradwire::run_command_line(
      {argv + 1, argv + argc},
      {.out = std::cout, .err = std::cerr, .err_is_terminal = isatty(STDERR_FILENO) == 1});
}
