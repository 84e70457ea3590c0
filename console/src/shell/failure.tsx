import { ApiError } from '../api/client.ts'
import { Button } from '../design/button.tsx'
import { Callout } from '../design/callout.tsx'
import { titleOf } from './failure-title.ts'

/** Shows an error of the API in its place, with a way on. */
export function Failure({ error, onRetry }: { readonly error: unknown; readonly onRetry?: (() => void) | undefined }) {
  return (
    <Callout
      kind="bad"
      title={error instanceof ApiError ? titleOf(error) : 'This screen failed'}
      action={
        onRetry && (
          <Button size="small" onClick={onRetry}>
            Try again
          </Button>
        )
      }
    >
      <p>{error instanceof Error ? sentence(error.message) : String(error)}</p>
    </Callout>
  )
}

/** Details of problems begin in lower case, as log lines do. */
export function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? '' : '.')
}
