"""Where memory is kept. `port` is the contract; `local` and `memory` are engines that fulfil it."""
