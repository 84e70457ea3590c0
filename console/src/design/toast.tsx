import { lazy, Suspense, useSyncExternalStore } from 'react'

// They come with the first thing to say: nobody needs them to see the first screen.
const ToastList = lazy(() => import('./toast-list.tsx').then(({ ToastList: component }) => ({ default: component })))

type Shower = (title: string) => void

const waiting: string[] = []
let show: Shower | undefined
let wake: (() => void) | undefined

/** Says in passing that something was done. What went wrong stands where it went wrong, not here. */
export function say(title: string): void {
  if (show === undefined) {
    waiting.push(title)
    wake?.()
  } else {
    show(title)
  }
}

export function Toasts() {
  const isUsed = useSyncExternalStore(onWake, () => show !== undefined || waiting.length > 0)
  if (!isUsed) return null
  return (
    <Suspense fallback={null}>
      <ToastList listen={listen} />
    </Suspense>
  )
}

function onWake(listener: () => void): () => void {
  wake = listener
  return () => {
    wake = undefined
  }
}

/** Shows what was said so far, and from now on. */
function listen(shower: Shower): () => void {
  show = shower
  for (const title of waiting.splice(0)) shower(title)
  return () => {
    show = undefined
  }
}
