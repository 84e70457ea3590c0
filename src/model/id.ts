import { randomInt, randomUUID } from 'node:crypto'
import { z } from 'zod'

export const Id = z.uuid()

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
