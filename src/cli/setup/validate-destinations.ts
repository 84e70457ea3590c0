import type { Client } from '#client/client.ts'
import { InletError } from '#client/errors.ts'
import { inParallel } from '#lib/in-parallel.ts'
import { setupLimits } from './kinds/limits.ts'
import type { Plan } from './plan.ts'

export type InvalidDestination = { readonly name: string; readonly error: string }

/** Tries the declared destinations that are not known to work, as new and changed ones are. Returns those that cannot be written to. */
export async function validateDestinations(
  client: Client,
  { setup }: Plan,
  signal: AbortSignal,
  onStart: (names: readonly string[]) => void,
): Promise<readonly InvalidDestination[]> {
  const { destinations } = setup.names
  if (destinations.size === 0) return []
  const all = await Array.fromAsync(client.listDestinations())
  const pending = all.filter(({ name, status }) => status !== 'valid' && destinations.has(name))
  if (pending.length > 0) onStart(pending.map(({ name }) => name))
  const invalid: InvalidDestination[] = []
  await inParallel(
    setupLimits.parallel,
    pending,
    async ({ id, name }) => {
      try {
        const { status, last_error } = await client.validateDestination(id)
        if (status !== 'valid') invalid.push({ name, error: last_error ?? 'not valid' })
      } catch (error) {
        if (!(error instanceof InletError)) throw error
        invalid.push({ name, error: error.message })
      }
    },
    signal,
  )
  return invalid.toSorted((a, b) => (a.name < b.name ? -1 : 1))
}
