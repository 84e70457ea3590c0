import { type ErrorComponentProps, useRouter } from '@tanstack/react-router'
import { useEffect, useEffectEvent } from 'react'
import { ApiError } from '../api/client.ts'
import { isPassing, movingMs, slowMs } from '../api/intervals.ts'
import { Page } from '../design/layout.tsx'
import { Failure } from './failure.tsx'
import { isNotLoaded, reloadIfReachable, ScreenNotLoaded } from './lazy-screen.ts'

/** Stands in the place of a screen that cannot be shown. It tries again by itself where that may help. */
export function ScreenFailure({ error, reset }: ErrorComponentProps) {
  const router = useRouter()
  const needsReload = isNotLoaded(error)
  const retryMs = needsReload ? movingMs : error instanceof ApiError && isPassing(error) ? slowMs : undefined
  const retry = () => {
    if (needsReload) void reloadIfReachable()
    else if (error instanceof ApiError) void router.invalidate()
    else reset()
  }
  const retryLater = useEffectEvent(retry)
  useEffect(() => {
    if (retryMs === undefined) return
    // A page that was just loaded, and failed again, is not loaded again at once.
    const timer = setInterval(() => performance.now() > slowMs && retryLater(), retryMs)
    return () => clearInterval(timer)
  }, [retryMs])
  return (
    <Page title="Something failed">
      <Failure error={needsReload ? new ScreenNotLoaded(error) : error} onRetry={retry} />
    </Page>
  )
}
