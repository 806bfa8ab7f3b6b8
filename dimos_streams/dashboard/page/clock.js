/** The run's clock, estimated from the times of its messages. */

const DRIFT = 0.05;

export class RunClock {
  #utime = 0;
  #heardAt = 0;
  #stoppedAt = null;

  /** Let no time pass until the next message: the run has ended. */
  stop() {
    this.#stoppedAt = this.now();
  }

  /** @param {number} utime µs since the Unix epoch, when a message was sent */
  heard(utime) {
    this.#stoppedAt = null;
    const ahead = utime - this.now();
    const jumps = this.#utime === 0 || Math.abs(ahead) > 2e6;
    // The message with the least delay gives the best estimate; others pull the clock back slowly, as clocks drift.
    const now = jumps || ahead > 0 ? utime : this.now() + ahead * DRIFT;
    this.#utime = now;
    this.#heardAt = performance.now();
  }

  /** @returns {number} µs since the Unix epoch, by the run's clock; this machine's until the run was heard of */
  now() {
    if (this.#stoppedAt !== null) return this.#stoppedAt;
    if (this.#utime === 0) return Date.now() * 1000;
    return this.#utime + (performance.now() - this.#heardAt) * 1000;
  }
}
