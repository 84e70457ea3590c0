import { MergeView, unifiedMergeView } from '@codemirror/merge'
import { EditorState, type Extension } from '@codemirror/state'
import { EditorView, lineNumbers } from '@codemirror/view'
import { useEffect, useRef, useSyncExternalStore } from 'react'
import style from './code-editor.module.css'
import { editorTheme, reachable } from './theme.ts'

type Side = { readonly label: string; readonly text: string }
type DifferencesProps = { readonly before: Side; readonly after: Side; readonly language: Extension }

/** Long stretches that both texts share are folded. */
const collapseUnchanged = { margin: 3, minSize: 6 }

/** Shows the changes between two texts: side by side where there is room, else one below the other. */
export function Differences({ before, after, language }: DifferencesProps) {
  const host = useRef<HTMLDivElement>(null)
  const wide = useSyncExternalStore(subscribe, () => roomForTwo.matches)
  const [a, b] = [before.text, after.text]
  useEffect(() => {
    const parent = host.current
    if (parent === null) return
    const extensions = (label: string) => [
      readOnly,
      language,
      EditorView.contentAttributes.of({ 'aria-label': label, ...reachable }),
    ]
    const made = wide
      ? new MergeView({
          parent,
          a: { doc: a, extensions: extensions(before.label) },
          b: { doc: b, extensions: extensions(after.label) },
          collapseUnchanged,
        })
      : new EditorView({
          parent,
          state: EditorState.create({
            doc: b,
            extensions: [extensions(after.label), unifiedMergeView({ original: a, mergeControls: false, collapseUnchanged })],
          }),
        })
    return () => made.destroy()
  }, [a, b, before.label, after.label, language, wide])
  return <div ref={host} className={style.differences} />
}

const readOnly: Extension = [
  lineNumbers(),
  EditorState.readOnly.of(true),
  EditorView.contentAttributes.of({ 'aria-readonly': 'true' }),
  EditorView.lineWrapping,
  editorTheme,
]

const roomForTwo = window.matchMedia('(min-width: 60rem)')

function subscribe(listener: () => void): () => void {
  roomForTwo.addEventListener('change', listener)
  return () => roomForTwo.removeEventListener('change', listener)
}
