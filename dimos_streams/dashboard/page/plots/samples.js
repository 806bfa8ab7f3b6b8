/** The newest values of series over time. No DOM. */

const MAX_SERIES = 64;

/** A ring buffer of samples. A sample has one time, and a value of each series, NaN if there is none. */
export class Samples {
  /** The number of samples that were taken since the buffer was last cleared. */
  count = 0;
  #capacity;
  #times;
  /** @type {Map<string, {values: Float64Array, last: number}>} by name; `last` is the number of its last sample */
  #series = new Map();

  /** @param {number} capacity samples that are kept */
  constructor(capacity) {
    this.#capacity = capacity;
    this.#times = new Float64Array(capacity);
  }

  /**
   * Take a sample of all series. If the time goes back, all earlier samples are dropped.
   * @param {number} time seconds
   * @param {Iterable<[string, number]>} values by name
   */
  add(time, values) {
    const last = this.#last;
    if (this.count > 0 && time === last) return;
    if (this.count > 0 && time < last) this.clear();
    const place = this.count % this.#capacity;
    this.#times[place] = time;
    for (const { values: kept } of this.#series.values()) kept[place] = NaN;
    for (const [name, value] of values) {
      if (!Number.isFinite(value)) continue;
      const series = this.#of(name);
      series.values[place] = value;
      series.last = this.count;
    }
    this.count += 1;
    this.#forget();
  }

  clear() {
    this.count = 0;
    this.#series.clear();
  }

  /** Names of series that still have a value. */
  get names() {
    return [...this.#series.keys()];
  }

  /** Return the newest value of a series, null if the newest sample has none. */
  newest(name) {
    const series = this.#series.get(name);
    if (!series || series.last !== this.count - 1) return null;
    return series.values[series.last % this.#capacity];
  }

  /** Return the time since the newest value of a series, in seconds; infinite if there is none. */
  silence(name) {
    const series = this.#series.get(name);
    return series ? this.#last - this.#times[series.last % this.#capacity] : Infinity;
  }

  /**
   * Return the samples of the last `seconds`, in the form that uPlot takes.
   * @returns {(number|null)[][]} times, then the values of each series
   */
  window(names, seconds) {
    const from = this.count > 0 ? this.#last - seconds : 0;
    const begin = Math.max(0, this.count - this.#capacity);
    let first = this.count;
    while (first > begin && this.#times[(first - 1) % this.#capacity] >= from) first -= 1;
    const places = Array.from({ length: this.count - first }, (_, index) => (first + index) % this.#capacity);
    const times = places.map((place) => this.#times[place]);
    return [times, ...names.map((name) => {
      const values = this.#series.get(name)?.values;
      return places.map((place) => (values && !Number.isNaN(values[place]) ? values[place] : null));
    })];
  }

  get #last() {
    return this.#times[(this.count - 1) % this.#capacity];
  }

  #of(name) {
    let series = this.#series.get(name);
    if (!series) {
      series = { values: new Float64Array(this.#capacity).fill(NaN), last: this.count };
      this.#series.set(name, series);
    }
    return series;
  }

  /** Drop series without any value left, and if there are too many, those without a value for longest. */
  #forget() {
    for (const [name, { last }] of this.#series) if (last <= this.count - 1 - this.#capacity) this.#series.delete(name);
    if (this.#series.size <= MAX_SERIES) return;
    const oldest = [...this.#series].sort(([, one], [, other]) => one.last - other.last);
    for (const [name] of oldest.slice(0, this.#series.size - MAX_SERIES)) this.#series.delete(name);
  }
}
