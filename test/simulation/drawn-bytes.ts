import crypto, { type UUID } from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'
import type { Random } from '#lib/random.ts'

/** Control makes ids and versions from the randomness of Node: while this runs, they come from the seed. */
export async function withDrawnBytes<T>(random: Random, run: () => Promise<T>): Promise<T> {
  const { randomBytes, randomUUID } = crypto
  const draw = (size: number) => Buffer.from(Array.from({ length: size }, () => Math.floor(random.fraction() * 256)))
  Object.assign(crypto, { randomBytes: draw, randomUUID: () => toUuid(draw(16).toString('hex')) })
  syncBuiltinESMExports()
  try {
    return await run()
  } finally {
    Object.assign(crypto, { randomBytes, randomUUID })
    syncBuiltinESMExports()
  }
}

function toUuid(hex: string): UUID {
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20)}`
}
