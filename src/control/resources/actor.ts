import { isPerson, type Principal } from '#model/principal.ts'

/** The operator at the command line beside control, who acts for an account. */
export type CommandLine = { readonly account_id: string; readonly actor: 'cli' }

export type Caller = Principal | CommandLine

/** The value of `created_by` and `activated_by`. */
export function actorOf(caller: CommandLine): 'cli'
export function actorOf(caller: Principal): `key:${string}` | `person:${string}`
export function actorOf(caller: Caller): `key:${string}` | `person:${string}` | 'cli'
export function actorOf(caller: Caller): string {
  if ('actor' in caller) return caller.actor
  return isPerson(caller) ? `person:${caller.person_id}` : `key:${caller.key_id}`
}
