/**
 * HMAC-SHA256 (RFC 2104) in SQL.
 *
 * Law: no statement has a part of a secret, because errors and previews show statements. It names variables of the connection, which hold the
 * padded key (`records/secret-variables.ts`).
 */
import { createHash } from 'node:crypto'
import { quoteLiteral } from '#duckdb/quote.ts'

const blockBytes = 64

/** The key of a secret, as the two hashes begin with it. */
export type HmacPads = { readonly inner: Buffer; readonly outer: Buffer }

export function hmacPads(secret: Uint8Array): HmacPads {
  const block = Buffer.alloc(blockBytes)
  block.set(secret.byteLength > blockBytes ? createHash('sha256').update(secret).digest() : secret)
  const padded = (mask: number): Buffer => Buffer.from(block.map((byte) => byte ^ mask))
  return { inner: padded(0x36), outer: padded(0x5c) }
}

/** The name of the variable that holds a pad of a secret. */
export function padVariable(secret: string, pad: keyof HmacPads): string {
  return `${pad}_pad_of_${secret}`
}

/** SQL for the HMAC of a text, in lower-case hex. */
export function hmacSql(secret: string, text: string): string {
  const pad = (which: keyof HmacPads): string => `CAST(getvariable(${quoteLiteral(padVariable(secret, which))}) AS BLOB)`
  return `sha256(${pad('outer')} || unhex(sha256(${pad('inner')} || encode(${text}))))`
}
