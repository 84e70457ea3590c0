import { z } from 'zod'

const durationPattern = /^(?:(\d{1,6})h)?(?:(\d{1,6})m)?(?:(\d{1,6})s)?$/
const expected = 'must be a duration in hours, minutes and seconds, such as 24h or 1h30m; a day is 24h'

/** Parses a duration such as `15m`, `1h` or `1h30m`. Returns seconds, or undefined if it is not a duration. */
export function parseDurationSeconds(text: string): number | undefined {
  const match = text === '' ? null : durationPattern.exec(text)
  if (match === null) return undefined
  const [, hours = '0', minutes = '0', seconds = '0'] = match
  return Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds)
}

/** A duration between two bounds, both in seconds. The upper one is in whole hours. */
export const duration = (secondsMin: number, secondsMax: number) =>
  z
    .string()
    .max(32)
    .regex(durationPattern, expected)
    .min(1, expected)
    .refine(
      (text) => {
        const seconds = parseDurationSeconds(text) ?? secondsMin
        return seconds >= secondsMin && seconds <= secondsMax
      },
      `must be from ${secondsMin} s to ${secondsMax / 3600} h`,
    )
