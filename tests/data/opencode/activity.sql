CREATE TABLE `session` (
          `id` text PRIMARY KEY,
          `project_id` text NOT NULL,
          `workspace_id` text,
          `parent_id` text,
          `slug` text NOT NULL,
          `directory` text NOT NULL,
          `path` text,
          `title` text NOT NULL,
          `version` text NOT NULL,
          `share_url` text,
          `summary_additions` integer,
          `summary_deletions` integer,
          `summary_files` integer,
          `summary_diffs` text,
          `metadata` text,
          `cost` real DEFAULT 0 NOT NULL,
          `tokens_input` integer DEFAULT 0 NOT NULL,
          `tokens_output` integer DEFAULT 0 NOT NULL,
          `tokens_reasoning` integer DEFAULT 0 NOT NULL,
          `tokens_cache_read` integer DEFAULT 0 NOT NULL,
          `tokens_cache_write` integer DEFAULT 0 NOT NULL,
          `revert` text,
          `permission` text,
          `agent` text,
          `model` text,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          `time_compacting` integer,
          `time_archived` integer,
          CONSTRAINT `fk_session_project_id_project_id_fk` FOREIGN KEY (`project_id`) REFERENCES `project`(`id`) ON DELETE CASCADE
        );
CREATE TABLE `part` (
          `id` text PRIMARY KEY,
          `message_id` text NOT NULL,
          `session_id` text NOT NULL,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          `data` text NOT NULL,
          CONSTRAINT `fk_part_message_id_message_id_fk` FOREIGN KEY (`message_id`) REFERENCES `message`(`id`) ON DELETE CASCADE
        );
CREATE TABLE `message` (
          `id` text PRIMARY KEY,
          `session_id` text NOT NULL,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          `data` text NOT NULL,
          CONSTRAINT `fk_message_session_id_session_id_fk` FOREIGN KEY (`session_id`) REFERENCES `session`(`id`) ON DELETE CASCADE
        );
insert into session values('ses_de9b034ddffe9mmXIPdUbhtqjU','global',null,null,'mighty-pixel','/home/dev/proj','home/dev/proj','An aside.','1.18.33',null,0,0,0,null,null,0.009,2000,200,0,0,0,null,'[{"permission":"question","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]','build','{"id":"claude-sonnet-4-5","providerID":"anthropic","variant":"default"}',1795670657826,1795670672275,null,null);
insert into message values('msg_2164fcc93001de5zUHYtFkU1b6','ses_de9b034ddffe9mmXIPdUbhtqjU',1795670658195,1795670671817,'{"role":"user","time":{"created":1795670658195},"agent":"build","model":{"providerID":"anthropic","modelID":"claude-sonnet-4-5"},"summary":{"diffs":[]}}');
insert into message values('msg_2164fe218001pe232GxcmRxwe9','ses_de9b034ddffe9mmXIPdUbhtqjU',1795670663704,1795670670437,'{"parentID":"msg_2164fcc93001de5zUHYtFkU1b6","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/home/dev/proj","root":"/"},"cost":0.0045,"tokens":{"total":1100,"input":1000,"output":100,"reasoning":0,"cache":{"write":0,"read":0}},"modelID":"claude-sonnet-4-5","providerID":"anthropic","time":{"created":1795670663704,"completed":1795670670435},"finish":"tool-calls"}');
insert into message values('msg_2164ffcd4001y8Foq5wivotMoG','ses_de9b034ddffe9mmXIPdUbhtqjU',1795670670548,1795670672046,'{"parentID":"msg_2164fcc93001de5zUHYtFkU1b6","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/home/dev/proj","root":"/"},"cost":0.0045,"tokens":{"total":1100,"input":1000,"output":100,"reasoning":0,"cache":{"write":0,"read":0}},"modelID":"claude-sonnet-4-5","providerID":"anthropic","time":{"created":1795670670548,"completed":1795670672044},"finish":"stop"}');
insert into part values('prt_2164fcce70011aMRkjM5CL7rXc','msg_2164fcc93001de5zUHYtFkU1b6','ses_de9b034ddffe9mmXIPdUbhtqjU',1795670663609,1795670663624,'{"type":"text","text":"\"THETASK please\""}');
insert into part values('prt_2164fe980001QUKrq4n37SdFQw','msg_2164fe218001pe232GxcmRxwe9','ses_de9b034ddffe9mmXIPdUbhtqjU',1795670665600,1795670665602,'{"type":"step-start"}');
insert into part values('prt_2164fe984001YKSnFt4NtVqaas','msg_2164fe218001pe232GxcmRxwe9','ses_de9b034ddffe9mmXIPdUbhtqjU',1795670665604,1795670670388,'{"type":"tool","tool":"bash","callID":"toolu_fake000002","state":{"status":"completed","input":{"command":"ls; echo hi > f.txt","description":"work"},"output":"(no output)","metadata":{"output":"(no output)","exit":0,"truncated":false},"title":"ls; echo hi > f.txt","time":{"start":1795670665615,"end":1795670670386}}}');
insert into part values('prt_2164ffc3b001V4E6XNKoE6paOE','msg_2164fe218001pe232GxcmRxwe9','ses_de9b034ddffe9mmXIPdUbhtqjU',1795670670396,1795670670400,'{"reason":"tool-calls","type":"step-finish","tokens":{"total":1100,"input":1000,"output":100,"reasoning":0,"cache":{"write":0,"read":0}},"cost":0.0045}');
insert into part values('prt_216500285001KTYbxWDpAoJwFX','msg_2164ffcd4001y8Foq5wivotMoG','ses_de9b034ddffe9mmXIPdUbhtqjU',1795670672005,1795670672012,'{"type":"step-start"}');
insert into part values('prt_21650029d001DVnn4EDw23q8zu','msg_2164ffcd4001y8Foq5wivotMoG','ses_de9b034ddffe9mmXIPdUbhtqjU',1795670672029,1795670672036,'{"type":"text","text":"All done.","time":{"start":1795670672029,"end":1795670672035}}');
insert into part values('prt_2165002a70011F5MGK6K8Y4DN0','msg_2164ffcd4001y8Foq5wivotMoG','ses_de9b034ddffe9mmXIPdUbhtqjU',1795670672039,1795670672040,'{"reason":"stop","type":"step-finish","tokens":{"total":1100,"input":1000,"output":100,"reasoning":0,"cache":{"write":0,"read":0}},"cost":0.0045}');
