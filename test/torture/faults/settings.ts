/** Changes what the owner of an endpoint can change: segment age and size, formats, views and the destination. */
import type { Fault, SettingsChange } from '../plan.ts'
import { Random } from '../random.ts'
import type { Rig } from '../rig.ts'
import type { Heal } from './heal.ts'

const mebibyte = 1024 * 1024

export function settings({ change, seed }: Extract<Fault, { kind: 'settings' }>, rig: Rig): Heal {
  const random = new Random(seed)
  const { id } = random.pick(rig.living)
  rig.inBackground(`change ${change}`, () => (change === 'view' ? toggleView(rig, id) : patch(rig, id, change, random)))
  return undefined
}

/** Brings an endpoint back to short segments, so that the round can end. */
export async function resetSettings(rig: Rig): Promise<void> {
  for (const { id } of rig.living) await rig.management.ok('PATCH', `/v1/endpoints/${id}`, { segment_max_age_seconds: 1 })
}

async function patch(rig: Rig, id: string, change: Exclude<SettingsChange, 'view'>, random: Random): Promise<void> {
  const value = {
    age: { segment_max_age_seconds: random.pick([1, 2, 5, 3600]) },
    size: { segment_bytes: random.pick([8, 16, 64]) * mebibyte },
    formats: {
      output_formats: random.pick([['parquet'], ['parquet', 'parquet_views'], ['segments', 'parquet', 'parquet_views']]),
    },
    destination: { destination_id: random.pick(rig.destinationIds) },
  }[change]
  await rig.management.ok('PATCH', `/v1/endpoints/${id}`, value)
}

/** Attaches the second view, or detaches it if it is attached. */
async function toggleView(rig: Rig, id: string): Promise<void> {
  const viewId = rig.viewIds[1]
  const { items } = await rig.management.ok('GET', `/v1/endpoints/${id}/views`)
  const bindings = items as readonly { readonly id: string; readonly view_id: string; readonly status: string }[]
  const attached = bindings.find(({ view_id, status }) => view_id === viewId && status === 'active')
  // A repeated call that was done already gets an error, which is fine.
  if (attached === undefined) await rig.management.call('POST', `/v1/endpoints/${id}/views`, { view_id: viewId })
  else await rig.management.call('DELETE', `/v1/endpoints/${id}/views/${attached.id}`)
}
