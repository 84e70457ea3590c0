import {
  autocompletion,
  type CompletionContext,
  type CompletionResult,
  closeBrackets,
  closeBracketsKeymap,
  closeCompletion,
  completionKeymap,
} from '@codemirror/autocomplete'
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands'
import { bracketMatching, indentOnInput } from '@codemirror/language'
import { lintGutter, lintKeymap, setDiagnostics } from '@codemirror/lint'
import { Annotation, Compartment, EditorState, type Extension } from '@codemirror/state'
import { EditorView, highlightActiveLine, keymap, lineNumbers, placeholder } from '@codemirror/view'
import { useEffect, useLayoutEffect, useRef, useState } from 'react'
import style from './code-editor.module.css'
import { type EditorProblem, rangeOf } from './editor-problem.ts'
import { plainTyping } from './plain-typing.ts'
import { editorTheme, reachable } from './theme.ts'

/** Returns what can be written between the text before the cursor and the text after it. */
export type Complete = (before: string, after: string) => CompletionResult | null

type CodeEditorProps = {
  /** Name of the edited text, for screen readers. */
  readonly label: string
  readonly language: Extension
  readonly value: string
  readonly onChange: (text: string) => void
  /** Ctrl Enter. */
  readonly onRun?: () => void
  readonly problems?: readonly EditorProblem[]
  /** If it is not set, the language completes. */
  readonly complete?: Complete
  readonly hint?: string
  /** A box is one field among others: it is as high as its text, and has no line numbers. The others look like files. */
  readonly look?: 'short' | 'tall' | 'box'
}

const noProblems: readonly EditorProblem[] = []

/** Marks a change that the caller made, so that it is not reported back. */
const byCaller = Annotation.define<true>()

/**
 * A text in a language. Tab leaves it, as it leaves any other field.
 *
 * Law: the text belongs to the caller. A value that differs from what was typed replaces it.
 */
export function CodeEditor(props: CodeEditorProps) {
  const { label, language, value, problems = noProblems, hint = '', look = 'short' } = props
  const host = useRef<HTMLDivElement>(null)
  const [view, setView] = useState<EditorView | null>(null)
  const [languageSlot] = useState(() => new Compartment())
  const latest = useRef(props)
  useLayoutEffect(() => {
    latest.current = props
  })

  // biome-ignore lint/correctness/useExhaustiveDependencies: what changes later goes into the view that exists, see the effects below
  useEffect(() => {
    if (host.current === null) return
    const { complete } = latest.current
    const override = [
      ({ state, pos }: CompletionContext) => latest.current.complete?.(state.sliceDoc(0, pos), state.sliceDoc(pos)) ?? null,
    ]
    const run = (made: EditorView) => {
      const { onRun } = latest.current
      if (onRun === undefined) return false
      closeCompletion(made)
      onRun()
      return true
    }
    const extensions = [
      keymap.of([{ key: 'Mod-Enter', run }]),
      look === 'box' ? [basics, box] : [basics, file],
      languageSlot.of(language),
      placeholder(hint),
      EditorView.contentAttributes.of({ 'aria-label': label, ...reachable }),
      autocompletion({ icons: false, ...(complete && { override }) }),
      EditorView.updateListener.of(({ docChanged, state, transactions }) => {
        const typed = docChanged && !transactions.some((each) => each.annotation(byCaller))
        if (typed) latest.current.onChange(state.doc.toString())
      }),
    ]
    const made = new EditorView({ parent: host.current, state: EditorState.create({ doc: value, extensions }) })
    setView(made)
    return () => made.destroy()
  }, [label, hint])

  useEffect(() => view?.dispatch({ effects: languageSlot.reconfigure(language) }), [view, language, languageSlot])
  // Before anything else can be typed: a later effect would take back what was typed since.
  useLayoutEffect(() => {
    if (view === null || view.state.doc.toString() === value) return
    view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: value }, annotations: byCaller.of(true) })
  }, [view, value])
  useEffect(() => {
    if (view === null) return
    const text = view.state.doc.toString()
    const diagnostics = problems.map((problem) => ({
      ...rangeOf(text, problem),
      severity: problem.severity,
      message: problem.message,
    }))
    view.dispatch(setDiagnostics(view.state, diagnostics))
  }, [view, problems])

  return <div ref={host} className={style.editor} data-look={look} />
}

const basics: Extension = [
  history(),
  bracketMatching(),
  closeBrackets(),
  EditorView.lineWrapping,
  plainTyping,
  keymap.of([...closeBracketsKeymap, ...completionKeymap, ...lintKeymap, ...historyKeymap, ...defaultKeymap]),
  editorTheme,
]

const file: Extension = [lineNumbers(), indentOnInput(), highlightActiveLine(), lintGutter(), EditorState.tabSize.of(2)]

/** It has room around its text. */
const box = EditorView.theme({
  '.cm-content': { padding: 'var(--space-3) var(--space-4)', minHeight: '9rem' },
  '.cm-line': { padding: '0' },
})
