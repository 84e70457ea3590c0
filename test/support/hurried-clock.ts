import { type Clock, systemClock } from '#lib/clock.ts'

/** A clock on which each wait ends at once, and takes as long as it should. */
export function hurriedClock(): Clock {
  let now = 0
  return {
    ...systemClock,
    monotonic: () => now,
    setTimer: (callback, delayMs) => {
      now += delayMs
      return systemClock.setTimer(callback, 0)
    },
  }
}
