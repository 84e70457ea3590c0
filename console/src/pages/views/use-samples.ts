import { useMemo, useState } from 'react'
import { keepSamples, keptSamples } from '../../shell/kept-samples.ts'
import { useAccount } from '../../shell/session.tsx'
import { splitSamples } from './samples.ts'
import { useSettled } from './use-settled.ts'

const pastingMs = 350

export type Samples = {
  readonly text: string
  /** Each record, shortly after the text last changed. */
  readonly records: readonly string[]
  readonly change: (text: string) => void
}

/** The samples that are kept for a view; `view` is empty for a new one. */
export function useSamples(view: string): Samples {
  const account = useAccount()
  const [text, setText] = useState(() => keptSamples(account, view))
  const settled = useSettled(text, pastingMs)
  const records = useMemo(() => splitSamples(settled), [settled])
  const change = (changed: string) => {
    setText(changed)
    keepSamples(account, view, changed)
  }
  return { text, records, change }
}
