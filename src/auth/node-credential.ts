/** The credential that a node sends to control: `<node id>.<secret>`. Only the hash of the secret is kept, beside the id. */
import type { Random } from '#lib/random.ts'
import { nodeSecretPattern } from '#model/patterns.ts'
import { randomText } from './secrets.ts'

const secretChars = 32

/** Generates `ing_node_` and 32 random base62 characters. */
export function newNodeSecret(random?: Random): string {
  return `ing_node_${randomText(secretChars, random)}`
}

export function printNodeCredential(node_id: string, secret: string): string {
  return `${node_id}.${secret}`
}

/** Returns undefined for anything else. */
export function parseNodeCredential(text: string): { readonly node_id: string; readonly secret: string } | undefined {
  const [node_id = '', secret = '', ...rest] = text.split('.')
  return rest.length === 0 && nodeSecretPattern.test(secret) ? { node_id: node_id.toLowerCase(), secret } : undefined
}
