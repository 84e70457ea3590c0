import { Unplug } from 'lucide-react'
import type { ReactNode } from 'react'
import { isMissing } from '../api/intervals.ts'
import { EmptyState } from '../design/empty-state.tsx'
import { Failure } from './failure.tsx'

type MissingProps = {
  /** Kind of resource that the address leads to: `endpoint`. */
  readonly noun: string
  /** The link to a screen that exists. */
  readonly back: ReactNode
  /** Note about data that outlives the resource. */
  readonly children?: ReactNode
}

type LoadFailureProps = MissingProps & { readonly query: { readonly error: unknown; readonly refetch: () => unknown } }

/** Says why a screen is not shown. Where the thing was deleted, trying again does not help. */
export function LoadFailure({ query, ...missing }: LoadFailureProps) {
  if (isMissing(query.error)) return <Missing {...missing} />
  return <Failure error={query.error} onRetry={() => void query.refetch()} />
}

/** The state of an address that leads to nothing any more. */
export function Missing({ noun, back, children }: MissingProps) {
  return (
    <EmptyState icon={<Unplug />} title={`This ${noun} does not exist`} action={back}>
      <p>It was deleted, or the link is incomplete.</p>
      {children}
    </EmptyState>
  )
}
