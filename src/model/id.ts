import { randomInt, randomUUID } from 'node:crypto'
import { z } from 'zod'

/** Accepted in any case, stored and returned in lower case. */
export const Id = z
  .uuid()
  .toLowerCase()
  .meta({ examples: ['4f8c1f0e-6a53-4c0e-9d3b-0000000000e1'] })

export function newId(): string {
  return randomUUID()
}

const base36 = '0123456789abcdefghijklmnopqrstuvwxyz'

/** Returns a short random string of lowercase letters and digits that starts with a letter, so that it is a valid DNS label. */
export function newLabel(length: number): string {
  let label = base36.charAt(10 + randomInt(26))
  while (label.length < length) label += base36.charAt(randomInt(36))
  return label
}
