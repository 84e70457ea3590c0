import { useSyncExternalStore } from 'react'
import { formatDuration } from './format.ts'

const dateTime = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' })
const recentMs = 86_400_000

/** One timer for all times on a page. */
const clock = { now: Date.now(), listeners: new Set<() => void>(), timer: 0 }
const tickMs = 1000

function subscribe(listener: () => void): () => void {
  clock.listeners.add(listener)
  if (clock.listeners.size === 1) {
    // It stood still while no page showed a time.
    clock.now = Date.now()
    clock.timer = window.setInterval(() => {
      clock.now = Date.now()
      for (const each of clock.listeners) each()
    }, tickMs)
  }
  return () => {
    clock.listeners.delete(listener)
    if (clock.listeners.size === 0) window.clearInterval(clock.timer)
  }
}

/** Changes each second while something on the page shows it. */
export function useNow(): number {
  return useSyncExternalStore(subscribe, () => clock.now)
}

/** The same length of text for a minute, so that nothing flickers. */
function agoText(ms: number): string {
  if (Math.abs(ms) < 2000) return 'now'
  return ms > 0 ? `${formatDuration(ms)} ago` : `in ${formatDuration(-ms)}`
}

/** How long ago, or the date where that is long; the exact time in the viewer's zone and in UTC on hover. */
export function Time({ at, exact = false }: { readonly at: string | number; readonly exact?: boolean }) {
  const date = new Date(at)
  const iso = date.toISOString()
  return (
    <time dateTime={iso} title={`${dateTime.format(date)}\n${iso.replace('T', ' ').replace('Z', ' UTC')}`}>
      {exact ? dateTime.format(date) : <Ago ms={date.getTime()} date={date} />}
    </time>
  )
}

function Ago({ ms, date }: { readonly ms: number; readonly date: Date }) {
  const age = Math.floor((useNow() - ms) / 1000) * 1000
  return Math.abs(age) < recentMs ? agoText(age) : dateTime.format(date)
}
