import { Callout } from '../../design/callout.tsx'
import type { DestinationChoice } from './preferred-destination.ts'

/** For a select: a destination that was not validated may refuse everything. */
export function destinationChoices(destinations: readonly DestinationChoice[] | undefined) {
  return (destinations ?? []).map(({ id, name, status }) => ({
    value: id,
    label: status === 'valid' ? name : `${name} (not validated)`,
  }))
}

/** Warns of a destination that may refuse everything. */
export function UnvalidatedNote({ destination }: { readonly destination: DestinationChoice | undefined }) {
  if (destination === undefined || destination.status === 'valid') return null
  return (
    <Callout kind="warn" title={`“${destination.name}” is not validated`}>
      <p>If Inlet may not write to its bucket, data waits on the nodes. Open the destination and validate it first.</p>
    </Callout>
  )
}
