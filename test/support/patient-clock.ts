import { type Clock, systemClock } from '#lib/clock.ts'

/** The time of this machine, but waits of 12 s and more take a minute: on a busy machine, what is not late elsewhere would be refused. */
export const patientClock: Clock = {
  ...systemClock,
  setTimer: (callback, delayMs) => systemClock.setTimer(callback, delayMs >= 12_000 ? 60_000 : delayMs),
}
