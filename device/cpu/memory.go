package cpu

// addressable is more memory than a process of today's systems can have.
const addressable = 1 << 47
