/**
 * The token with which a node joins: `<secret>`, or `<secret>.<pin>`. Control stores the hash of the secret. The pin names the root
 * certificate of control, so that a node can recognise control before it sends the secret. The supervisor loads this file too: keep it small.
 */
import { joinTokenPattern } from '#model/patterns.ts'

/** `pin` is undefined if nodes trust the certificate of control by themselves. */
export function printJoinToken(secret: string, pin: string | undefined): string {
  return pin === undefined ? secret : `${secret}.${pin}`
}

/** Returns undefined for anything else. */
export function parseJoinToken(text: string): { readonly secret: string; readonly pin: string | null } | undefined {
  if (!joinTokenPattern.test(text)) return undefined
  const [secret = '', pin = null] = text.split('.')
  return { secret, pin }
}
