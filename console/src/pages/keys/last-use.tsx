import { Time, useNow } from '../../design/time.tsx'

/** Control records the minute of a use: until it is over, seconds would pretend to know more. */
const freshMs = 120_000

/** When a key was last used, in words. */
export function LastUse({ at }: { readonly at: string | null }) {
  const now = useNow()
  if (at === null) return 'never'
  return now - Date.parse(at) < freshMs ? 'just now' : <Time at={at} />
}
