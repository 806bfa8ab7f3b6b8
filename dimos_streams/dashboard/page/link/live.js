/** The live topics of a run: pictures, scans and whatever else is too much for the monitor. */

export class Live {
  topics = [];
  rates = {};

  onTopics() {
    return () => {};
  }

  watch() {
    return () => {};
  }
}
