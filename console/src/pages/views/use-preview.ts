import { useQuery } from '@tanstack/react-query'
import { useMemo, useState } from 'react'
import { ApiError } from '../../api/client.ts'
import { type PreviewResult, previewQuery, type Trial, trialLimits } from '../../api/view-trials.ts'
import type { DefinitionFormat } from '../../api/views.ts'
import { type EditorProblem, pointedAt } from '../../editor/editor-problem.ts'
import { useAccount } from '../../shell/session.tsx'
import { useSettled } from './use-settled.ts'

const typingMs = 350

/** The compiler checks a definition only together with a sample. */
const anySample = ['{}'] as const

export type LivePreview = {
  /** The last result, also while the definition has errors; undefined without samples, and until there is one. */
  readonly result: PreviewResult | undefined
  /** The input that has to be there before there is a result. */
  readonly missing: 'samples' | 'definition' | undefined
  /** Whether a result for the text as it is comes soon. */
  readonly isWorking: boolean
  /** Errors of the compiler, with places in the definition. */
  readonly problems: readonly EditorProblem[]
  /** Warnings about columns that readers of the files will stumble over. */
  readonly warnings: readonly EditorProblem[]
  /** Why there is no result, other than `problems`. */
  readonly error: Error | null
  readonly retry: () => void
}

/** Tries a definition on samples whenever one of them changes. */
export function usePreview(definition: string, format: DefinitionFormat, samples: readonly string[]): LivePreview {
  const account = useAccount()
  const taken = samples.slice(0, trialLimits.samplesMax)
  const wanted = JSON.stringify({ definition, format, samples: taken.length === 0 ? anySample : taken })
  const settled = useSettled(wanted, typingMs)
  const trial = useMemo((): Trial => JSON.parse(settled), [settled])
  const { data, error, isFetching, refetch } = useQuery({
    ...previewQuery(account, trial),
    enabled: definition.trim() !== '',
  })
  const [last, setLast] = useState(data)
  if (data !== undefined && data !== last) setLast(data)
  const problems = useMemo(() => problemsOf(error, trial.definition), [error, trial])
  // While the text changes, the last warnings may be about other lines.
  const warnings = useMemo(() => (wanted === settled ? warningsOf(data) : []), [wanted, settled, data])
  return {
    result: taken.length === 0 ? undefined : (data ?? last),
    missing: taken.length === 0 ? 'samples' : definition.trim() === '' ? 'definition' : undefined,
    isWorking: wanted !== settled || isFetching,
    problems,
    warnings,
    error: problems.length > 0 ? null : error,
    retry: () => void refetch(),
  }
}

function warningsOf(result: PreviewResult | undefined): readonly EditorProblem[] {
  return (result?.warnings ?? []).flatMap(({ place, message }) =>
    place === undefined ? [] : [{ ...place, message, severity: 'warning' as const }],
  )
}

function problemsOf(error: Error | null, definition: string): readonly EditorProblem[] {
  if (!(error instanceof ApiError)) return []
  const errors = error.problem.errors ?? []
  // A problem of a sample has no place in the definition.
  return errors.flatMap(({ path, message, excerpt, line, column = 1 }) =>
    line === undefined || path.startsWith('samples')
      ? []
      : [{ ...pointedAt(definition, { line, column }, excerpt), message, severity: 'error' as const }],
  )
}
