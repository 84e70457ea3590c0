import {
  autocompletion,
  type Completion,
  closeBrackets,
  closeBracketsKeymap,
  closeCompletion,
  completionKeymap,
} from '@codemirror/autocomplete'
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands'
import { sql } from '@codemirror/lang-sql'
import { bracketMatching } from '@codemirror/language'
import { setDiagnostics } from '@codemirror/lint'
import { Compartment, EditorState } from '@codemirror/state'
import { EditorView, keymap, placeholder } from '@codemirror/view'
import { useEffect, useEffectEvent, useRef } from 'react'
import { identifier, type QueryTable } from '../../api/query.ts'
import { type EditorProblem, rangeOf } from '../../editor/editor-problem.ts'
import { plainTyping } from '../../editor/plain-typing.ts'
import { editorTheme } from '../../editor/theme.ts'
import { duckdb } from './duckdb-dialect.ts'
import style from './explore.module.css'

type SqlEditorProps = {
  readonly value: string
  readonly onChange: (text: string) => void
  /** Ctrl Enter. */
  readonly onRun: () => void
  /** Completed as one types. */
  readonly tables: readonly QueryTable[]
  /** Errors of the statement that ran, underlined. */
  readonly problems: readonly EditorProblem[]
}

/** A box among others, not a file: it has room around its text. */
const room = EditorView.theme({
  '.cm-content': { padding: 'var(--space-3) var(--space-4)', minHeight: '9rem' },
  '.cm-line': { padding: '0' },
})

/** Quotes a name that DuckDB takes for a word of its own. */
function completionOf({ name }: QueryTable['columns'][number]): Completion {
  return { label: name, type: 'property', apply: identifier(name) }
}

/** A box for one statement. Tab leaves it, so that the keyboard is never caught. */
export function SqlEditor({ value, onChange, onRun, tables, problems }: SqlEditorProps) {
  const host = useRef<HTMLDivElement>(null)
  const editor = useRef<{ readonly view: EditorView; readonly language: Compartment } | null>(null)
  const changed = useEffectEvent(onChange)
  const run = useEffectEvent(onRun)
  const initial = useEffectEvent(() => value)

  useEffect(() => {
    if (host.current === null) return
    const language = new Compartment()
    const runKey = {
      key: 'Mod-Enter',
      run: (view: EditorView) => {
        closeCompletion(view)
        run()
        return true
      },
    }
    const view = new EditorView({
      parent: host.current,
      state: EditorState.create({
        doc: initial(),
        extensions: [
          history(),
          bracketMatching(),
          closeBrackets(),
          autocompletion({ icons: false }),
          language.of([]),
          keymap.of([runKey, ...closeBracketsKeymap, ...completionKeymap, ...historyKeymap, ...defaultKeymap]),
          placeholder('SELECT …'),
          EditorView.lineWrapping,
          plainTyping,
          EditorView.contentAttributes.of({ 'aria-label': 'SQL' }),
          EditorView.updateListener.of((update) => update.docChanged && changed(update.state.doc.toString())),
          room,
          editorTheme,
        ],
      }),
    })
    editor.current = { view, language }
    return () => {
      view.destroy()
      editor.current = null
    }
  }, [])

  useEffect(() => {
    if (editor.current === null) return
    const schema = Object.fromEntries(tables.map(({ name, columns }) => [name, columns.map(completionOf)]))
    const { view, language } = editor.current
    view.dispatch({ effects: language.reconfigure(sql({ dialect: duckdb, schema, upperCaseKeywords: true })) })
  }, [tables])

  // A ready query, or another address, puts its own text into the box.
  useEffect(() => {
    const view = editor.current?.view
    if (view === undefined || view.state.doc.toString() === value) return
    view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: value } })
  }, [value])

  useEffect(() => {
    const view = editor.current?.view
    if (view === undefined) return
    const text = view.state.doc.toString()
    const diagnostics = problems.map((problem) => ({
      ...rangeOf(text, problem),
      severity: problem.severity,
      message: problem.message,
    }))
    view.dispatch(setDiagnostics(view.state, diagnostics))
  }, [problems])

  return <div ref={host} className={style.editor} />
}
